package sched

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// spare is the places of the device's send queue that only marks, the drain marker, a descriptor and a notice may take.
const spare = maxMarks + 4

// dispatch posts slices of what waits: the policy picks a class among those whose oldest request may go. If what it
// picked has no room, everything waits: whoever is smaller would undo what the policy decided.
func (q *qp) dispatch() {
	if q.failed || q.closed {
		return
	}
	q.win.follow()
	defer q.win.publish()
	if q.dev.disc.timed {
		q.heads.now = now()
	}
	willComplete := false // a completion will tell that there is room again
	for q.ready != 0 {
		set := q.eligible()
		if set == 0 {
			willComplete = willComplete || q.completionDue(false)
			break
		}
		c := set.most()
		if set&(set-1) != 0 {
			q.heads.unit = q.win.slice
			c = q.pol.pick(set, &q.heads)
		}
		p := &q.parents[q.class[c].first]
		if p.flags&pSend != 0 && !q.reserve(c, p) {
			willComplete = true // the peer tells
			if c = q.holder(set); c < 0 {
				break
			}
			p = &q.parents[q.class[c].first]
		}
		n := p.size - p.off
		if p.flags&pSlices != 0 {
			n = min(n, q.win.longest())
			if p.flags&pReserved != 0 {
				n = q.sendLen(p, n)
			}
		}
		if int(q.tail-q.head) >= q.places-spare || readOps.Has(p.wr.Op) && q.reads >= max(q.ord, 1) {
			willComplete = willComplete || q.completionDue(false)
			break
		}
		if !q.win.room(c, n) {
			break
		}
		if !q.cut(c, p, n) {
			return
		}
	}
	// Only a mark tells that there is room again.
	if q.win.hOut == q.win.limit || q.win.loose && q.win.hOut > 0 {
		willComplete = true
	}
	if !willComplete && q.ready != 0 && q.win.out == 0 && (q.tail != q.head || q.win.apart && q.win.under(0) > 0) {
		q.markRead()
	}
	if q.flush() && q.draining && !q.begun() {
		q.draining = false
		_ = q.below.Drain() // it fails only where there is nothing left to drain
	}
}

// completionDue is true if a request under way will complete, and dispatch look again. answers: one that has an answer;
// a local mark that is a write completes while reads before it are under way.
func (q *qp) completionDue(answers bool) bool {
	for at := q.head; at != q.tail; at++ {
		f := q.ring[at&uint32(len(q.ring)-1)].flags
		if f&(eSignaled|eDone) == eSignaled && (!answers || f&eResponds != 0) {
			return true
		}
	}
	return false
}

// eligible are the classes whose oldest request may go now.
func (q *qp) eligible() classSet {
	set := q.ready
	if set&(set-1) == 0 && !q.draining {
		return set
	}
	for c := range Priorities {
		if !set.has(c) {
			continue
		}
		p := &q.parents[q.class[c].first]
		switch {
		case p.flags&pBegun != 0:
		case q.draining, p.flags&pOrdered != 0 && !q.oldest(p.seq):
			set &^= 1 << c
		}
	}
	return set
}

func (q *qp) oldest(seq uint64) bool {
	for c := range Priorities {
		if q.ready.has(c) && q.heads.seq[c] < seq {
			return false
		}
	}
	return true
}

// cut puts the next n bytes of the oldest request of class c into the batch.
func (q *qp) cut(c int, p *parent, n uint64) bool {
	w := &q.batch[q.filled]
	*w = p.wr
	w.Flags &^= rdma.Signaled
	last := p.off+n == p.size
	if p.flags&pReserved != 0 {
		w = q.sendPart(q.class[c].first, p, n)
	} else if n < p.size {
		off := p.off
		if w.Op == rdma.OpRead {
			// The end first: what leaves the peer's registration is refused before anything is placed (RFC 5040 §7.2).
			if off == 0 {
				off, p.tail = p.size-n, n
			} else {
				off -= p.tail
			}
		}
		w.NumSGE = part(&w.SGE, &p.wr.SGE, p.wr.NumSGE, off, n)
		w.RemoteAddr += off
		if p.off > 0 {
			w.Flags &^= rdma.Fence // the first slice waited for the reads
		}
		if !last {
			w.Flags &^= rdma.Solicited
			if w.Op == rdma.OpWriteImm {
				w.Op, w.Imm = rdma.OpWrite, 0
			}
		}
	}
	i := q.class[c].first
	e := entry{parent: i}
	// What was overtaken has to tell when it ends: a completion may be held for it.
	q.ahead = max(q.ahead, p.seq)
	if last && (p.flags&pSignaled != 0 || p.seq < q.ahead) {
		e.flags |= eSignaled
	}
	if readOps.Has(w.Op) {
		if q.reads++; q.reads == max(q.ord, 1) && e.flags&eSignaled == 0 && !q.completionDue(true) {
			e.flags |= eSignaled // or nothing would tell that there is room for the next
		}
		e.flags |= eResponds
	}
	p.flags |= pBegun
	p.off += n
	p.out++
	if last {
		p.flags |= pIssued
		q.waiting--
		if q.class[c].first = p.next; p.next == none {
			q.class[c].last = none
		}
		q.newHead(c)
	}
	q.pol.charge(c, int(n), !q.ready.has(c))
	marks := false
	q.win.issue(c, n)
	if q.win.due() {
		// The answer of a read is a mark by itself.
		if marks = q.win.asks() && w.Op != rdma.OpRead; !marks {
			e.flags |= eMark | eSignaled
			q.markOn(e.flags)
		}
	}
	q.stage(e)
	if marks {
		q.markRead()
	}
	return q.filled < len(q.batch)-2 || q.flush() // a descriptor, a send and a mark fit
}

// part writes the elements of bytes [off, off+n) of a list into dst.
func part(dst, list *[rdma.MaxSGE]rdma.SGE, elements uint8, off, n uint64) (k uint8) {
	for _, s := range list[:elements] {
		if off >= uint64(s.Len) {
			off -= uint64(s.Len)
			continue
		}
		take := min(uint64(s.Len)-off, n)
		dst[k] = rdma.SGE{Addr: s.Addr + off, Len: uint32(take), LKey: s.LKey}
		k++
		off, n = 0, n-take
		if n == 0 {
			break
		}
	}
	return k
}

func (q *qp) stage(e entry) {
	w := &q.batch[q.filled]
	q.filled++
	q.nextID++
	w.ID, e.id = q.nextID, q.nextID
	if e.flags&eSignaled != 0 {
		w.Flags |= rdma.Signaled
	}
	q.ring[q.tail&uint32(len(q.ring)-1)] = e
	q.tail++
	q.msgs += takes(w.Op)
}

func (q *qp) markRead() {
	q.batch[q.filled] = q.marking()
	e := entry{parent: none, flags: eSignaled | eMark}
	if q.batch[q.filled].Op == rdma.OpRead {
		e.flags |= eResponds
		q.reads++
	}
	q.win.mark()
	q.stage(e)
}

// proves reports whether the completion of a mark says that the peer has taken what is before it.
func (q *qp) proves(f entryFlags) bool { return !q.win.apart || f&eResponds != 0 }

func (q *qp) markOn(f entryFlags) {
	if q.proves(f) {
		q.win.mark()
	} else {
		q.win.hand()
	}
}

// marking is a mark of its own: a read of nothing, or without reads a write of nothing.
func (q *qp) marking() rdma.SendWR {
	if q.ord > 0 && q.dev.caps.Features.Has(rdma.FeatEmptyRead) {
		return rdma.SendWR{Op: rdma.OpRead}
	}
	return rdma.SendWR{Op: rdma.OpWrite}
}

// flush posts the batch. False: the device refused a part for what [qp.admit] does not know, and the connection ends.
func (q *qp) flush() bool {
	k := q.filled
	if k == 0 {
		return true
	}
	q.filled = 0
	q.send.posted = true
	n, err := q.below.PostSend(q.batch[:k])
	if err == nil {
		return true
	}
	for ; n < k; k-- {
		q.tail--
		e := &q.ring[q.tail&uint32(len(q.ring)-1)]
		if e.flags&eResponds != 0 {
			q.reads--
		}
		switch {
		case e.flags&eMark == 0:
		case q.proves(e.flags):
			q.win.out--
		default:
			q.win.hOut--
		}
		if e.parent == none {
			continue
		}
		p := &q.parents[e.parent]
		p.flags |= pRefused
		if k == n+1 && err != rdma.ErrClosed {
			p.flags |= pFatal
		}
	}
	_ = q.below.Fail() // a QP that is closed already has failed
	q.failed = true
	q.leave()
	q.drainMarker()
	return false
}

// fail notes that the connection is over. What waits is flushed behind what was posted.
func (q *qp) fail() {
	if q.failed {
		return
	}
	q.failed, q.draining = true, false
	q.leave()
	if q.waiting > 0 {
		q.drainMarker()
	}
}

// leave takes the QP out of its group: what is posted on a connection that is over holds nobody back.
func (q *qp) leave() {
	q.win.over()
	q.dev.groups.leave(q.win.share.group)
	q.win.share.group = nil
}

// drainMarker posts a request that completes behind everything posted so far (IBTA C10-97).
func (q *qp) drainMarker() {
	q.batch[0] = rdma.SendWR{Op: rdma.OpSend}
	q.stage(entry{parent: none, flags: eSignaled | eDrainMarker})
	q.filled = 0
	if n, _ := q.below.PostSend(q.batch[:1]); n == 0 {
		q.tail--
		if q.head == q.tail {
			q.flushUnposted()
		}
	}
}

// flushUnposted ends what was not posted, or not all of it, in the order of the posts.
func (q *qp) flushUnposted() {
	var rest []int32
	for i := range q.parents {
		if f := q.parents[i].flags; f&pUsed != 0 && f&pReported == 0 {
			rest = append(rest, int32(i))
		}
	}
	slices.SortFunc(rest, func(a, b int32) int { return cmp.Compare(q.parents[a].seq, q.parents[b].seq) })
	for c := range Priorities {
		q.class[c] = queue{none, none}
	}
	q.ready, q.waiting = 0, 0
	for _, i := range rest {
		p := &q.parents[i]
		st := rdma.StatusWRFlushErr
		if p.flags&pFatal != 0 {
			st = rdma.StatusLocQPOpErr
		}
		q.reportFailed(i, p, st, 0)
		q.release(i)
	}
}
