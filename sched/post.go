package sched

import (
	"math"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	allFlags  = rdma.Signaled | rdma.Fence | rdma.Solicited | rdma.Inline
	inlineOps = sendOps | 1<<rdma.OpWrite | 1<<rdma.OpWriteImm
	sendOps   = rdma.OpSet(1<<rdma.OpSend | 1<<rdma.OpSendInv | 1<<rdma.OpSendImm)
	readOps   = rdma.OpSet(1<<rdma.OpRead | 1<<rdma.OpFetchAdd | 1<<rdma.OpCmpSwap)

	// What takes a receive at the peer.
	takingOps = rdma.OpSet(1<<rdma.OpSend | 1<<rdma.OpSendInv | 1<<rdma.OpSendImm | 1<<rdma.OpWriteImm)

	// What an invalidation overtakes could still need the key (IBTA 10.6.5.1), and the peer's key as well.
	orderedOps = rdma.OpSet(1<<rdma.OpLocalInv | 1<<rdma.OpSendInv)
)

// takes is how many receives of the peer's an operation takes.
func takes(op rdma.Opcode) uint32 { return uint32(takingOps>>op) & 1 }

// PostSend takes requests. What need not wait goes straight to the device below,
// in the caller's own slice; the rest is copied and posted by priority.
func (q *qp) PostSend(wrs []rdma.SendWR) (n int, err error) {
	q.mu.Lock()
	if size, ok := q.simple(wrs); ok {
		n, err = q.below.PostSend(wrs)
		if n < len(wrs) {
			size, _ = q.simple(wrs[:n])
		}
		q.tail += uint32(n)
		q.posted += uint64(n)
		q.win.issued[0] += size
		q.win.since += int(size)
		if q.mailbox != nil {
			for i := range wrs[:n] {
				q.msgs += takes(wrs[i].Op)
			}
		}
	} else {
		n, err = q.post(wrs)
	}
	q.mu.Unlock()
	return n, err
}

// simple reports whether all of wrs can go to the device below as they are and have nothing to do but to be noted: it
// is [qp.straight] for the usual case alone. It notes them behind the tail, with no effect until that moves, and adds
// up their bytes.
func (q *qp) simple(wrs []rdma.SendWR) (size uint64, ok bool) {
	if q.waiting > 0 || q.failed || q.closed || q.draining || q.sigAll || q.win.share.group != nil ||
		q.used()+len(wrs) > q.depth || int(q.tail-q.head)+len(wrs) > q.places-spare {
		return 0, false
	}
	ring, slice := q.ring, uint32(q.win.slice)
	mask := uint32(len(ring) - 1)
	at := q.tail
	run := at // where the unsignalled ones before the one at hand begin
	for i := range wrs {
		w := &wrs[i]
		n := w.SGE[0].Len
		if w.Priority|(w.NumSGE^1) != 0 || n > slice || readOps.Has(w.Op) {
			return 0, false
		}
		size += uint64(n)
		e := &ring[at&mask]
		e.id, e.parent = w.ID, none
		at++
		if w.Flags&rdma.Signaled == 0 {
			e.flags = eUser
			continue
		}
		e.flags = ePlain
		if k := at - 1 - run; k > 0 {
			first := &ring[run&mask]
			first.parent, first.flags = int32(k), eUser|eRun
		}
		run = at
	}
	mark := q.win.every
	if q.win.asks() {
		mark = q.win.rarely // as in [qp.through]
	}
	return size, q.win.since+int(size) < mark && q.win.under(0)+size <= uint64(q.win.bytes)
}

func (q *qp) post(wrs []rdma.SendWR) (done int, err error) {
	if q.closed {
		return 0, rdma.ErrClosed
	}
	q.win.follow()
	defer q.win.publish()
	for done < len(wrs) && q.waiting == 0 && !q.draining {
		k, marked, why := q.straight(wrs[done:])
		if k > 0 {
			n, err := q.through(wrs[done:done+k], marked)
			if done += n; err != nil {
				return done, err
			}
			continue
		}
		if why != nil {
			return done, why
		}
		break // it has to wait
	}
	for done < len(wrs) {
		if err = q.enqueue(&wrs[done]); err != nil {
			break
		}
		done++
	}
	if q.waiting > 0 {
		q.dispatch()
		q.keepUp()
	}
	return done, err
}

// used is how many places of the send queue are taken.
func (q *qp) used() int { return int(q.posted - q.freed) }

// straight counts the requests at the start of wrs that can go to the device below as they are. marked: the last of
// them is unsignalled and has to complete, to carry a mark or to tell that reads have ended. Without any, why is the
// reason to refuse the first, or nil if it has to wait.
func (q *qp) straight(wrs []rdma.SendWR) (k int, marked bool, why error) {
	used, room := q.used(), q.places-int(q.tail-q.head)-spare
	if q.failed {
		room = len(wrs) // the device below flushes at once
	}
	reads, total, since := q.reads, q.win.under(0)+q.win.others(0), q.win.since
	most, longest, every := uint64(q.win.bytes), uint64(q.win.slice), q.win.every
	if q.failed {
		most, longest, every, reads = math.MaxUint64, math.MaxUint64, math.MaxInt, math.MinInt
	} else if q.win.asks() || q.win.out+q.win.hOut >= q.win.limit {
		every = math.MaxInt
	}
	for k < len(wrs) {
		w := &wrs[k]
		switch {
		case w.Priority >= Priorities:
			return k, false, rdma.ErrInvalid
		case used+k >= q.depth:
			return k, false, rdma.ErrQueueFull
		case k >= room:
			return k, false, nil
		}
		n := uint64(w.SGE[0].Len)
		if w.NumSGE != 1 {
			n = w.Len()
		}
		if n > longest && w.Flags&rdma.Inline == 0 {
			if sendOps.Has(w.Op) && q.refuses(n) {
				return k, false, rdma.ErrInvalid
			}
			if q.dev.sliced.Has(w.Op) || sendOps.Has(w.Op) {
				return k, false, nil
			}
		}
		if total += n; total > most && total > n {
			return k, false, nil
		}
		if readOps.Has(w.Op) {
			switch reads++; {
			case reads > max(q.ord, 1):
				return k, false, nil
			case reads == max(q.ord, 1) && w.Flags&rdma.Signaled == 0 && !q.sigAll && !q.completionDue(true):
				return k + 1, true, nil // it tells that there is room for the next
			}
		}
		k++
		// Where completions acknowledge, a mark is a signalled request.
		if since += int(n); since >= every {
			if w.Flags&rdma.Signaled == 0 && !q.sigAll {
				return k, true, nil
			}
			since = 0
		}
	}
	return k, false, nil
}

// through posts requests as they are. marked: the last one is signalled beyond the user's wish.
func (q *qp) through(wrs []rdma.SendWR, marked bool) (int, error) {
	if q.mayAsk() && !marked && !q.sigAll && len(wrs) < len(q.batch) && q.win.since+bytesOf(wrs) >= q.win.rarely {
		return q.withMark(wrs)
	}
	k := len(wrs)
	if marked {
		k--
	}
	n, err := q.directly(wrs[:k], false)
	if err == nil && marked {
		var m int
		m, err = q.directly(wrs[k:], true)
		n += m
	}
	if q.mayAsk() && q.win.since >= q.win.rarely { // with something urgent it may have become due only now
		q.markRead()
		q.flush()
	}
	return n, err
}

// mayAsk reports whether a mark of its own may follow.
func (q *qp) mayAsk() bool {
	return q.win.asks() && q.win.out+q.win.hOut < q.win.limit && !q.failed
}

// withMark posts requests and a mark behind them at once. On its own a mark costs a software stack a system call and a
// packet at each end, and as much more of the round trip for which the completions of what comes behind it wait.
func (q *qp) withMark(wrs []rdma.SendWR) (int, error) {
	k := copy(q.batch[:], wrs)
	q.batch[k] = q.marking()
	q.batch[k].ID, q.batch[k].Flags = q.nextID+1, rdma.Signaled
	n, err := q.below.PostSend(q.batch[:k+1])
	q.note(wrs[:min(n, k)], 0)
	if n < k {
		return n, err
	}
	q.filled = k
	q.markRead() // as it was posted
	q.filled = 0
	if n == k { // it was not: alone it is refused again, and that is dealt with there
		q.batch[0], q.filled = q.batch[k], 1
		q.flush()
	}
	return k, nil
}

// bytesOf is the payload of requests.
func bytesOf(wrs []rdma.SendWR) (size int) {
	for i := range wrs {
		size += int(wrs[i].Len())
	}
	return size
}

// directly posts and notes requests. signal: all of them are signalled.
func (q *qp) directly(wrs []rdma.SendWR, signal bool) (done int, err error) {
	if !signal && !q.sigAll {
		done, err = q.below.PostSend(wrs)
		q.note(wrs[:done], 0)
		return done, err
	}
	for done < len(wrs) && err == nil {
		b := q.batch[:min(len(wrs)-done, len(q.batch))]
		copy(b, wrs[done:])
		for i := range b {
			b[i].Flags |= rdma.Signaled
		}
		var n int
		n, err = q.below.PostSend(b)
		q.note(wrs[done:done+n], eSignaled)
		done += n
	}
	return done, err
}

// note records requests that went straight through, with flags beyond their own.
func (q *qp) note(wrs []rdma.SendWR, more entryFlags) {
	mask := uint32(len(q.ring) - 1)
	for i := range wrs {
		w := &wrs[i]
		f := eUser | more
		if w.Flags&rdma.Signaled != 0 {
			f = ePlain
		} else if q.sigAll {
			f |= eVisible
		}
		if readOps.Has(w.Op) {
			f |= eResponds
			q.reads++
		}
		n := uint64(w.SGE[0].Len)
		if w.NumSGE != 1 {
			n = w.Len()
		}
		if w.Priority == 0 {
			q.win.issued[0] += n
			q.win.since += int(n)
		} else {
			c := int(w.Priority)
			q.win.overtakes(c)
			if q.win.lesser(c) {
				q.win.urgent()
			}
			q.win.issue(c, n)
		}
		if q.win.since >= q.win.every && f&eSignaled != 0 && !q.win.asks() && q.win.due() {
			q.markOn(f)
			f |= eMark
		}
		q.ring[q.tail&mask] = entry{w.ID, none, f}
		q.tail++
		q.msgs += takes(w.Op)
	}
	q.posted += uint64(len(wrs))
}

// enqueue copies a request that waits. It checks what the device below would
// refuse at once, because nobody is there any more when it does.
func (q *qp) enqueue(w *rdma.SendWR) error {
	if w.Priority >= Priorities {
		return rdma.ErrInvalid
	}
	size := w.Len()
	if err := q.admit(w, size); err != nil {
		return err
	}
	if q.used() >= q.depth {
		return rdma.ErrQueueFull
	}
	i := q.newParent()
	p := &q.parents[i]
	*p = parent{wr: *w, seq: q.seq, size: size, next: none, nextUnsignaled: none, flags: pUsed}
	// After a failure there are more parents than places, and nobody reads the bytes.
	if w.Flags&rdma.Inline != 0 && size > 0 && !q.failed && !q.copyInline(i, p) {
		q.release(i)
		return rdma.ErrInvalid
	}
	q.seq++
	q.posted++
	if q.dev.disc.timed {
		p.at = now()
	}
	if q.dev.sliced.Has(w.Op) && w.Flags&rdma.Inline == 0 {
		p.flags |= pSlices
	}
	if sendOps.Has(w.Op) && w.Flags&rdma.Inline == 0 && q.cuts() && size > uint64(q.win.slice) {
		p.flags |= pSend
	} else if q.dev.cutting && sendOps.Has(w.Op) && w.Flags&rdma.Inline == 0 && size > uint64(q.win.slice) {
		q.dev.tally.whole.Add(1)
	}
	if w.Flags&rdma.Fence != 0 || orderedOps.Has(w.Op) {
		p.flags |= pOrdered
	}
	c := int(w.Priority)
	q.win.overtakes(c)
	if w.Flags&rdma.Signaled != 0 || q.sigAll {
		p.flags |= pSignaled
	} else {
		q.append(&q.unsignaled[c], i, true)
		q.unended++
	}
	if q.ready&(1<<c-1) != 0 || q.win.lesser(c) {
		q.win.urgent()
	}
	q.append(&q.class[c], i, false)
	if q.class[c].first == i {
		q.newHead(c)
	}
	q.waiting++
	return nil
}

// admit repeats the checks of ibv_post_send(3).
func (q *qp) admit(w *rdma.SendWR, size uint64) error {
	caps := &q.dev.caps
	switch {
	case int(w.Op) >= rdma.NumOpcodes || w.Flags&^allFlags != 0:
		return rdma.ErrInvalid
	case !caps.Ops.Has(w.Op):
		return rdma.ErrNotSupported
	case int(w.NumSGE) > caps.MaxSGE, w.Op == rdma.OpRead && int(w.NumSGE) > caps.MaxReadSGE, size > caps.MaxMsg:
		return rdma.ErrInvalid
	case w.Flags&rdma.Fence != 0 && !caps.Features.Has(rdma.FeatFence),
		w.Op == rdma.OpSendImm && size > 0 && !caps.Features.Has(rdma.FeatImmPayload):
		return rdma.ErrNotSupported
	case w.Op.IsAtomic() && (w.NumSGE != 1 || size != 8), w.Op == rdma.OpLocalInv && w.NumSGE != 0,
		sendOps.Has(w.Op) && w.Flags&rdma.Inline == 0 && q.refuses(size):
		return rdma.ErrInvalid
	case w.Flags&rdma.Inline == 0:
		return nil
	case !caps.Features.Has(rdma.FeatInline):
		return rdma.ErrNotSupported
	case !inlineOps.Has(w.Op) || size > uint64(q.inline):
		return rdma.ErrInvalid
	}
	return nil
}

// copyInline takes the bytes of an inline request now: they are the caller's again when the post returns.
func (q *qp) copyInline(i int32, p *parent) bool {
	off := int(i) * q.inline
	room := q.copies.Bytes()[off : off+q.inline]
	at := 0
	for k := range int(p.wr.NumSGE) {
		s := &p.wr.SGE[k]
		if s.Len == 0 {
			continue
		}
		b := rdma.BufferAt(s.Addr, int(s.Len))
		if b == nil {
			return false
		}
		at += copy(room[at:], b)
	}
	p.wr.NumSGE = 1
	p.wr.SGE[0] = rdma.SGE{Addr: q.copies.Addr() + uint64(off), Len: uint32(at)}
	return true
}

// newParent takes a free place; the table grows to the depth of the queue, once.
func (q *qp) newParent() int32 {
	if i := q.free; i != none {
		q.free = q.parents[i].next
		return i
	}
	q.parents = append(q.parents, parent{})
	return int32(len(q.parents) - 1)
}

func (q *qp) release(i int32) {
	q.parents[i].flags = 0
	q.parents[i].next = q.free
	q.free = i
}

// append puts a parent at the end of a list: of its class, or of the unsignalled ones.
func (q *qp) append(l *queue, i int32, unsignaled bool) {
	switch {
	case l.last == none:
		l.first = i
	case unsignaled:
		q.parents[l.last].nextUnsignaled = i
	default:
		q.parents[l.last].next = i
	}
	l.last = i
}

// newHead tells the policy of the oldest request of a class.
func (q *qp) newHead(c int) {
	i := q.class[c].first
	if i == none {
		q.ready &^= 1 << c
		return
	}
	q.ready |= 1 << c
	q.heads.at[c], q.heads.seq[c] = q.parents[i].at, q.parents[i].seq
}
