package sched

import (
	"math"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// reassembler is the receiving half of a mailbox: the receives posted, in their order, as a message takes the oldest
// one and only its beginning is placed below. mu is innermost but for locks of the device below.
type reassembler struct {
	mu     sync.Mutex
	off    bool // the peer does not cut
	broken bool // a message could not be taken whole: the connection has to end
	msgs   uint32
	taken  uint32 // of those, cut ones

	// A ring of receives, [head, tail).
	ring       []rdma.RecvWR
	head, tail uint32
	shortest   uint32 // of them; of the last one when there is none
	many       uint32 // that are as short

	advertisedTaken    uint32 // as last told to the peer
	advertisedShortest uint32
}

func recvLen(wr *rdma.RecvWR) uint32 { return uint32(min(wr.Len(), math.MaxUint32)) }

// posted notes receives that the device below has. The caller holds mu.
func (b *reassembler) posted(wrs []rdma.RecvWR) {
	for i := range wrs {
		n := recvLen(&wrs[i])
		switch {
		case b.head == b.tail || n < b.shortest:
			b.shortest, b.many = n, 1
		case n == b.shortest:
			b.many++
		}
		if int(b.tail-b.head) == len(b.ring) {
			more := make([]rdma.RecvWR, max(2*len(b.ring), 16))
			for at := b.head; at != b.tail; at++ {
				more[at%uint32(len(more))] = b.ring[at%uint32(len(b.ring))]
			}
			b.ring = more
		}
		b.ring[b.tail%uint32(len(b.ring))] = wrs[i]
		b.tail++
	}
}

// pop takes the oldest receive off the ring. The caller holds mu.
func (b *reassembler) pop() *rdma.RecvWR {
	wr := &b.ring[b.head%uint32(len(b.ring))]
	b.head++
	if recvLen(wr) != b.shortest {
		return wr
	}
	if b.many--; b.many > 0 || b.head == b.tail {
		return wr
	}
	b.shortest = math.MaxUint32
	for at := b.head; at != b.tail; at++ {
		switch n := recvLen(&b.ring[at%uint32(len(b.ring))]); {
		case n < b.shortest:
			b.shortest, b.many = n, 1
		case n == b.shortest:
			b.many++
		}
	}
	return wr
}

func (b *reassembler) advertise() uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advertisedShortest = b.shortest
	return b.shortest
}

func (b *reassembler) news() bool {
	return b.taken != b.advertisedTaken || b.shortest != b.advertisedShortest || b.broken
}

func (q *qp) postRecv(wrs []rdma.RecvWR) (int, error) {
	b := &q.mailbox.in
	b.mu.Lock()
	n, err := q.below.PostRecv(wrs)
	if b.off {
		b.mu.Unlock()
		return n, err
	}
	b.posted(wrs[:n])
	news := b.news()
	b.mu.Unlock()
	if news {
		q.sendCredits()
	}
	return n, err
}

// reassemble sees every message at a QP that may take cut sends. What begins a cut one becomes the completion of the
// whole, or a failed one. creditDue: the peer has to be notified of it.
func (q *qp) reassemble(wc *rdma.WC) (creditDue bool) {
	b := &q.mailbox.in
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off {
		return false
	}
	if b.broken { // nothing behind what failed would have arrived
		*wc = rdma.WC{ID: wc.ID, QPNum: wc.QPNum, Status: rdma.StatusWRFlushErr}
		return true
	}
	msg := b.msgs
	b.msgs++
	if q.mailbox.mr == nil || b.head == b.tail {
		return false
	}
	wr := b.pop()
	box := q.mailbox.box.Bytes()
	s := readDescriptor(box[descriptorOffset(b.taken+1):])
	if s.turn != b.taken+1 || s.msg != msg {
		return b.taken != b.advertisedTaken
	}
	if st := q.assemble(wr, wc, &s, box[mailboxHead:]); st != rdma.StatusSuccess {
		b.broken = true
		*wc = rdma.WC{ID: wc.ID, QPNum: wc.QPNum, Status: st}
		return true
	}
	b.taken++
	return true
}

func (q *qp) assemble(wr *rdma.RecvWR, wc *rdma.WC, s *descriptor, ring []byte) rdma.Status {
	if wc.Opcode != rdma.WCRecv || !s.sound(wc.ByteLen, len(ring)) {
		return rdma.StatusBadRespErr
	}
	if uint64(s.size) > wr.Len() {
		return rdma.StatusLocLenErr
	}
	var list [rdma.MaxSGE]rdma.SGE
	rest := s.size - wc.ByteLen
	k := part(&list, &wr.SGE, wr.NumSGE, uint64(wc.ByteLen), uint64(rest))
	q.dev.keys.mu.RLock()
	defer q.dev.keys.mu.RUnlock()
	for _, e := range list[:k] {
		if !q.dev.keys.writable(q.pd, &e) {
			return rdma.StatusLocProtErr
		}
	}
	at := int(s.at)
	for _, e := range list[:k] {
		for dst := rdma.BufferAt(e.Addr, int(e.Len)); len(dst) > 0; {
			n := copy(dst, ring[at:])
			dst = dst[n:]
			if at += n; at == len(ring) {
				at = 0
			}
		}
	}
	wc.ByteLen = s.size
	return rdma.StatusSuccess
}

// sendCredits tells the peer what was taken, one notice at a time, or ends the connection if a message is broken.
func (q *qp) sendCredits() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sendingCredits && q.mailbox.out.agreed {
		_, _ = q.send.gather() // nobody else may poll the queue of an end that only receives
	}
	q.noticeNow()
}

// noticeNow is notice for those who hold q.mu.
func (q *qp) noticeNow() {
	b := &q.mailbox.in
	if q.closed || q.failed {
		return
	}
	b.mu.Lock()
	taken, shortest, broken, news := b.taken, b.shortest, b.broken, b.news()
	full := q.sendingCredits || !q.mailbox.out.agreed || int(q.tail-q.head) >= q.places-1
	if news && !full && !broken {
		b.advertisedTaken, b.advertisedShortest = taken, shortest
	}
	b.mu.Unlock()
	switch {
	case broken:
		_ = q.below.Fail() // a QP that is closed already has failed
		q.fail()
	case news && !full:
		desk := q.mailbox.desk.Bytes()[:creditsLen]
		putDouble(desk, taken)
		putDouble(desk[8:], shortest)
		q.sendingCredits = true
		w := &q.batch[q.filled]
		*w = rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Inline, RemoteAddr: q.mailbox.out.peer.addr,
			RKey: q.mailbox.out.peer.rkey, NumSGE: 1}
		w.SGE[0] = rdma.SGE{Addr: q.mailbox.desk.Addr(), Len: creditsLen}
		q.stage(entry{parent: none, flags: eSignaled | eNotice})
		q.flush()
	}
}

// arrived finds the QP of a message. The caller holds mu.
func (c *cq) arrived(wc *rdma.WC) {
	q := c.find(wc.QPNum)
	if q == nil || q.recv != c || q.mailbox == nil {
		return
	}
	if q.reassemble(wc) && !slices.Contains(c.creditsDue, q) {
		c.creditsDue = append(c.creditsDue, q)
	}
}

// notices lets QPs tell their peers, which may take the lock of another queue: nobody holds this one.
func (c *cq) notices() {
	for {
		c.mu.Lock()
		n := len(c.creditsDue)
		if n == 0 {
			c.mu.Unlock()
			return
		}
		q := c.creditsDue[n-1]
		c.creditsDue = c.creditsDue[:n-1]
		c.mu.Unlock()
		q.sendCredits()
	}
}

// keyring are the registrations that the tier copies into: it checks for those bytes what the device below checks for
// others. A key that a request revoked is not found out.
type keyring struct {
	mu sync.RWMutex // held for reading while the tier copies
	by map[uint32]*ownedMR
}

type ownedMR struct {
	rdma.MR
	pd   rdma.PD
	keys *keyring
}

func (k *keyring) add(pd rdma.PD, mr rdma.MR) rdma.MR {
	o := &ownedMR{mr, pd, k}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[uint32]*ownedMR{}
	}
	k.by[mr.LKey()] = o
	return o
}

// Close revokes the keys. The tier copies nothing there any more when it returns.
func (o *ownedMR) Close() error {
	if err := o.MR.Close(); err != nil {
		return err
	}
	o.keys.mu.Lock()
	defer o.keys.mu.Unlock()
	if key := o.LKey(); o.keys.by[key] == o {
		delete(o.keys.by, key)
	}
	return nil
}

// writable reports whether the tier may write an element of a receive. The caller holds mu.
func (k *keyring) writable(pd rdma.PD, e *rdma.SGE) bool {
	o := k.by[e.LKey]
	return o != nil && o.pd == pd && o.Access().Has(rdma.LocalWrite) &&
		e.Addr >= o.Addr() && uint64(e.Len) <= o.Len() && e.Addr-o.Addr() <= o.Len()-uint64(e.Len) &&
		rdma.BufferAt(e.Addr, int(e.Len)) != nil
}
