package sched

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// segmenter is the sending half of a mailbox. q.mu guards it.
type segmenter struct {
	agreed bool
	peer   offer
	room   int    // of the peer's ring that is used
	next   int    // place in the ring
	used   int    // bytes of the ring that the peer has not given back
	turns  uint32 // cut sends whose end was posted
	freed  uint32 // of those, taken by the peer

	// Parts of the ring, in their order: [first, first+many).
	reservations [maxCutSends]reservation
	first, many  int
	byTurn       [maxCutSends]int8 // reservation of a turn
	blocked      bool              // something waits until the peer gives back
}

// reservation is a part of the peer's ring, from the first slice of a cut send until the peer has taken it.
type reservation struct {
	bytes int
	class int8
	back  bool
}

func (q *qp) cuts() bool { return q.mailbox != nil && q.mailbox.out.agreed }

func (q *qp) refuses(size uint64) bool {
	switch {
	case size <= uint64(q.win.slice):
		return false
	case q.dev.cfg.Sends == CutOrRefuseSends:
		return !q.cuts() || size > uint64(q.mailbox.out.room)
	}
	return q.dev.cfg.Sends == RefuseSends
}

// readCredits reads what the peer says of its reassembler. It is false if that makes no sense.
func (o *segmenter) readCredits(box []byte) bool {
	if n, ok := readDouble(box[8:]); ok {
		o.peer.shortest = n
	}
	freed, ok := readDouble(box)
	if !ok || freed == o.freed {
		return true
	}
	if freed-o.freed > o.turns-o.freed {
		return false
	}
	for o.freed != freed {
		o.freed++
		o.reservations[o.byTurn[o.freed%maxCutSends]].back = true
	}
	for o.many > 0 && o.reservations[o.first].back {
		o.used -= o.reservations[o.first].bytes
		o.first = (o.first + 1) % maxCutSends
		o.many--
	}
	return true
}

// reserve finds room in the peer's ring for a send that may be cut, the oldest of class c; false: it has to wait. Where
// that would be for something less urgent, or in vain, it goes whole.
func (q *qp) reserve(c int, p *parent) bool {
	o := &q.mailbox.out
	if !o.readCredits(q.mailbox.box.Bytes()) {
		q.protocolError()
		return false
	}
	beginning := min(p.size-1, q.win.longest())
	rest := p.size - beginning
	fits := rest <= uint64(o.room-o.used) && o.many < maxCutSends
	if !fits && rest <= uint64(o.room) {
		less := false
		for i := range o.many {
			less = less || int(o.reservations[(o.first+i)%maxCutSends].class) < c
		}
		if !less && p.size <= uint64(o.peer.shortest) {
			if !o.blocked {
				o.blocked = true
				q.send.blocked++
			}
			return false
		}
	}
	p.flags &^= pSend
	if !fits || p.size > uint64(o.peer.shortest) {
		q.dev.tally.whole.Add(1)
		return true
	}
	q.dev.tally.cut.Add(1)
	i := (o.first + o.many) % maxCutSends
	o.reservations[i] = reservation{bytes: int(rest), class: int8(c)}
	o.many++
	o.used += int(rest)
	p.flags |= pSlices | pReserved
	p.tail, p.ring, p.reservation = beginning, uint32(o.next), int8(i)
	o.next = int((uint64(o.next) + rest) % uint64(o.room))
	return true
}

// holder is the most urgent class whose oldest request has a part of the ring, or below 0: while another waits for the
// ring, that one has to go on, or nothing would be given back.
func (q *qp) holder(set classSet) int {
	for c := Priorities - 1; c >= 0 && !q.failed; c-- {
		if set.has(c) && q.parents[q.class[c].first].flags&pReserved != 0 {
			return c
		}
	}
	return -1
}

// protocolError ends a connection whose peer gives back what it was not granted.
func (q *qp) protocolError() {
	if !q.flush() {
		return
	}
	_ = q.below.Fail() // a QP that is closed already has failed
	q.verdict = rdma.StatusBadRespErr
	q.fail()
}

// sendLen is how much of a cut send a slice of n bytes takes: it ends with the ring, and the beginning goes last.
func (q *qp) sendLen(p *parent, n uint64) uint64 {
	rest := p.size - p.tail
	if p.off >= rest {
		return p.tail
	}
	at := (uint64(p.ring) + p.off) % uint64(q.mailbox.out.room)
	return min(n, rest-p.off, uint64(q.mailbox.out.room)-at)
}

// sendPart makes the next n bytes of a cut send the end of the batch. The send itself is last, behind its descriptor.
func (q *qp) sendPart(i int32, p *parent, n uint64) *rdma.SendWR {
	o := &q.mailbox.out
	w := &q.batch[q.filled]
	if rest := p.size - p.tail; p.off < rest {
		at := (uint64(p.ring) + p.off) % uint64(o.room)
		*w = rdma.SendWR{Op: rdma.OpWrite, RemoteAddr: o.peer.addr + mailboxHead + at, RKey: o.peer.rkey,
			Flags: p.wr.Flags & rdma.Fence}
		w.NumSGE = part(&w.SGE, &p.wr.SGE, p.wr.NumSGE, p.tail+p.off, n)
		if p.off > 0 {
			w.Flags &^= rdma.Fence // the first slice waited for the reads
		}
		return w
	}
	o.turns++
	o.byTurn[o.turns%maxCutSends] = p.reservation
	off := descriptorOffset(o.turns)
	s := descriptor{o.turns, q.msgs, uint32(p.size), p.ring}
	s.put(q.mailbox.desk.Bytes()[off:])
	*w = rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Inline, RemoteAddr: o.peer.addr + uint64(off), RKey: o.peer.rkey,
		NumSGE: 1}
	w.SGE[0] = rdma.SGE{Addr: q.mailbox.desk.Addr() + uint64(off), Len: descriptorLen}
	p.out++
	q.stage(entry{parent: i})
	w = &q.batch[q.filled]
	*w = p.wr
	w.Flags &^= rdma.Signaled | rdma.Fence
	w.NumSGE = part(&w.SGE, &p.wr.SGE, p.wr.NumSGE, 0, n)
	return w
}

func (q *qp) unblock() {
	o := &q.mailbox.out
	if q.failed || q.closed || o.freedMore(q.mailbox.box.Bytes()) {
		o.blocked = false
		q.send.blocked--
		q.dispatch()
	}
}

func (o *segmenter) freedMore(box []byte) bool {
	freed, ok := readDouble(box)
	shortest, known := readDouble(box[8:])
	return ok && freed != o.freed || known && shortest != o.peer.shortest
}

// unblockSends looks for what peers gave back. The caller holds mu.
func (c *cq) unblockSends() {
	for _, q := range c.qps {
		if q.send == c && q.mailbox != nil && q.mailbox.out.blocked {
			q.unblock()
		}
	}
}
