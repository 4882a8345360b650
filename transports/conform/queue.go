package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The top bit marks receives: the opcode of a failed completion means nothing (ibv_poll_cq(3)).
const (
	recvBit  = 1 << 63
	sendMark = 0x5E4D << 32
	recvMark = recvBit | 0x4EC7<<32
)

func sendID(n int) uint64 { return sendMark | uint64(uint32(n)) }
func recvID(n int) uint64 { return recvMark | uint64(uint32(n)) }

// Numbers of the fixtures' own messages, clear of those of the cases.
const (
	helloID   = 0x7E110
	barrierID = 0xBA221E2
	drainID   = 0xBEAC
)

var ownNames = map[uint32]string{helloID: "hello", barrierID: "barrier", drainID: "drain marker"}

func idText(id uint64) string {
	kind := "send#"
	switch id &^ 0xffffffff {
	case sendMark:
	case recvMark:
		kind = "recv#"
	default:
		return fmt.Sprintf("wr_id %#x", id)
	}
	if name := ownNames[uint32(id)]; name != "" {
		return kind + name
	}
	return fmt.Sprint(kind, uint32(id))
}

type pending struct {
	id         uint64
	bytes      uint32 // of a read or atomic: the exact byte_len of success
	op         rdma.WCOpcode
	fetch      bool // bytes counts
	unsignaled bool // no completion on success
}

// workQueue is one send or receive queue as the verbs define it: what is outstanding, oldest first, and what has
// completed and awaits the case's judgement. It enforces the rules that hold in every case.
type workQueue struct {
	e      *Env
	end    *end
	name   string
	open   []pending
	shared map[uint64]bool // receives of an SRQ, by ID; shared by its QPs
	done   []rdma.WC
}

func (q *workQueue) signaled() int {
	n := 0
	for i := range q.open {
		if !q.open[i].unsignaled {
			n++
		}
	}
	return n
}

func (q *workQueue) file(wc rdma.WC) {
	if q.shared != nil {
		// Receives of an SRQ complete on whatever QP took them (man ibv_create_srq).
		if !q.shared[wc.ID] {
			q.e.failf("completions of outstanding receives, each once", "%s", q.text(&wc))
		}
		delete(q.shared, wc.ID)
		q.done = append(q.done, wc)
		return
	}
	for i := range q.open {
		p := &q.open[i]
		if p.id != wc.ID {
			if !p.unsignaled {
				break
			}
			continue // a later completion retires unsignalled requests (IBTA 10.7.3.1)
		}
		if wc.Status == rdma.StatusSuccess {
			q.checkSuccess(p, &wc)
		}
		q.open = q.open[i+1:]
		q.done = append(q.done, wc)
		return
	}
	want := "no completion: nothing is outstanding"
	if len(q.open) > 0 {
		want = fmt.Sprintf("completions once each and in post order, %s next", idText(q.open[0].id))
	}
	q.e.failf(want, "%s", q.text(&wc))
}

func (q *workQueue) checkSuccess(p *pending, wc *rdma.WC) {
	if p.id&recvBit != 0 {
		return // judged by the expectation
	}
	switch {
	case p.unsignaled:
		q.e.failf("no completion for an unsignalled success (IBTA 10.7.3.1)", "%s", q.text(wc))
	case wc.Opcode != p.op:
		q.e.failf(fmt.Sprintf("%s completes as %s", idText(p.id), p.op), "%s", q.text(wc))
	case p.fetch && wc.ByteLen != p.bytes:
		q.e.failf(fmt.Sprintf("%s fetches %d bytes", idText(p.id), p.bytes), "%s", q.text(wc))
	case wc.Flags != 0:
		q.e.failf("no immediate or invalidation on a send completion", "%s", q.text(wc))
	}
}

func (q *workQueue) next(want string) rdma.WC {
	if len(q.done) == 0 {
		q.e.wait(func() string { return q.name + ": " + want }, func() bool { return len(q.done) > 0 })
	}
	wc := q.done[0]
	q.done = q.done[1:]
	return wc
}

func (q *workQueue) drop() { q.done = q.done[:0] }

// text describes a completion. Only ID, status, QP and vendor error of a failure are read (ibv_poll_cq(3)).
func (q *workQueue) text(wc *rdma.WC) string {
	s := fmt.Sprintf("%s: %s %s", q.name, idText(wc.ID), wc.Status)
	switch {
	case wc.Status == rdma.StatusSuccess:
		s += fmt.Sprintf(", %s, %d bytes%s", wc.Opcode, wc.ByteLen, extras(wc.Flags, wc.Imm, wc.InvKey))
	case wc.VendorErr != 0:
		s += fmt.Sprintf(" (vendor %#x)", wc.VendorErr)
	}
	return s
}

func extras(flags rdma.WCFlags, imm, key uint32) (s string) {
	if flags&rdma.WithImm != 0 {
		s += fmt.Sprintf(", imm %#x", imm)
	}
	if flags&rdma.WithInv != 0 {
		s += fmt.Sprintf(", invalidated key %#x", key)
	}
	return s
}

// cqBox is one completion queue and the ends whose queues complete into it.
type cqBox struct {
	e      *Env
	name   string
	cq     rdma.CQ
	ends   []*end
	asleep bool // the application of this side does not poll
	closed bool
	lossy  bool  // an overrun is part of the case: kept in err instead of failing
	err    error // of Poll
}

func (b *cqBox) poll() bool {
	if b.err != nil {
		return false
	}
	n, err := b.cq.Poll(b.e.scratch[:])
	if err != nil {
		if !b.lossy {
			b.e.failf("poll "+b.name+" succeeds", "%v", err)
		}
		b.err = err
	}
	if n < 0 || n > len(b.e.scratch) {
		b.e.failf(fmt.Sprintf("poll %s returns 0..%d", b.name, len(b.e.scratch)), "%d", n)
	}
	for i := 0; i < n; i++ {
		b.file(b.e.scratch[i])
	}
	return n > 0
}

func (b *cqBox) file(wc rdma.WC) {
	for _, end := range b.ends {
		if end.num != wc.QPNum {
			continue
		}
		if wc.ID&recvBit != 0 {
			end.r.file(wc)
		} else {
			end.s.file(wc)
		}
		return
	}
	b.e.failf(b.name+": completions of its own QPs", "%s of qp %d", idText(wc.ID), wc.QPNum)
}

// sharedQueue is an SRQ. Which QP takes which receive is open, so only "each once" can be required.
type sharedQueue struct {
	e    *Env
	srq  rdma.SRQ
	open map[uint64]bool
}

func (e *Env) newSRQ(pd rdma.PD, depth int) *sharedQueue {
	srq, err := e.B.NewSRQ(rdma.SRQConfig{PD: pd, Depth: depth})
	e.must(fmt.Sprintf("create srq of %d", depth), err)
	e.onClose(rankCQ, e.B, "srq", srq.Close)
	return &sharedQueue{e: e, srq: srq, open: map[uint64]bool{}}
}

func (s *sharedQueue) post(wrs ...rdma.RecvWR) {
	if n, err := s.tryPost(wrs...); err != nil {
		s.e.failf(fmt.Sprintf("srq: post of %d receives taken", len(wrs)), "%d taken, then %v", n, err)
	}
}

func (s *sharedQueue) tryPost(wrs ...rdma.RecvWR) (int, error) {
	for i := range wrs {
		s.open[wrs[i].ID] = true
	}
	n, err := s.srq.PostRecv(wrs)
	s.e.checkCount("srq post recv", n, len(wrs), err)
	for i := n; i < len(wrs); i++ {
		delete(s.open, wrs[i].ID)
	}
	return n, err
}

func (s *sharedQueue) postEmpty(n int) {
	for i := range n {
		s.post(recv(i))
	}
}
