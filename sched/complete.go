package sched

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// A success ends the oldest signalled entry of the ring and all before it, whatever its ID (IBTA 10.8.5). Some iWARP
// devices complete what is only sent before earlier reads: answers are matched with answers. A failed completion can be
// of an unsignalled entry or a receive, and is matched by its ID.

// succeeded makes the completion of a send that of the user's request; visible: the user is to see it.
func (q *qp) succeeded(wc *rdma.WC) (visible bool) {
	mask := uint32(len(q.ring) - 1)
	answer := wc.Opcode == rdma.WCRead || wc.Opcode == rdma.WCFetchAdd || wc.Opcode == rdma.WCCmpSwap
	at := q.head
	if first := &q.ring[at&mask]; first.flags == eUser|eRun && !answer {
		at += uint32(first.parent)
	}
	if q.ring[at&mask].flags == ePlain && q.head != q.tail && !answer {
		// The usual case: nothing but the places to give back, and nothing that ended before behind it.
		q.uncovered += int(at - q.head)
		if q.head = at + 1; q.head != q.tail && q.ring[q.head&mask].flags&eDone == 0 {
			return true
		}
		visible = true
	} else {
		for at := q.head; at != q.tail; at++ {
			e := &q.ring[at&mask]
			same := e.flags&eResponds != 0 == answer
			if e.flags&eDone != 0 || !same && e.flags&eSignaled != 0 {
				continue
			}
			visible = q.ended(e, wc)
			e.flags |= eDone
			if e.flags&eSignaled != 0 {
				break
			}
		}
	}
	q.advance()
	return visible
}

func (q *qp) advance() {
	mask := uint32(len(q.ring) - 1)
	for q.head != q.tail && q.ring[q.head&mask].flags&eDone != 0 {
		q.head++
	}
	if q.head == q.tail && !q.win.apart {
		q.win.empty()
	}
}

func (q *qp) ended(e *entry, wc *rdma.WC) (visible bool) {
	if e.flags&eResponds != 0 {
		q.reads--
	}
	if e.flags&eMark != 0 {
		if q.proves(e.flags) {
			q.win.arrived()
			if q.win.out == 0 && q.ready != 0 {
				q.win.ranDry()
			}
		} else {
			q.win.sent()
		}
	}
	if e.flags&eUser != 0 {
		if e.flags&eVisible == 0 {
			q.uncovered++
			return false
		}
		return true
	}
	if e.parent == none {
		if e.flags&eNotice != 0 {
			q.sendingCredits = false
		}
		return false
	}
	p := &q.parents[e.parent]
	if p.out--; p.out > 0 || p.flags&pIssued == 0 && p.flags&pReported == 0 {
		return false
	}
	if p.flags&pReported != 0 {
		q.release(e.parent)
		return false
	}
	if p.flags&pRefused != 0 {
		return false // flushUnposted reports
	}
	if p.flags&pSignaled == 0 {
		q.uncovered++
		q.unsignaledEnded(e.parent, p)
		q.release(e.parent)
		q.tellHeld()
		return false
	}
	*wc = rdma.WC{ID: p.wr.ID, QPNum: q.num, Opcode: p.wr.Op.Completes()}
	if readOps.Has(p.wr.Op) {
		wc.ByteLen = uint32(p.size)
	}
	seq := p.seq
	q.release(e.parent)
	if q.covered(seq) {
		return true
	}
	q.held = append(q.held, kept{*wc, seq})
	return false
}

// covered reports whether all unsignalled requests posted before seq have ended, as a completion says (IBTA 10.7.3.1).
func (q *qp) covered(seq uint64) bool {
	if q.unended == 0 {
		return true
	}
	for c := range Priorities {
		if i := q.unsignaled[c].first; i != none && q.parents[i].seq < seq {
			return false
		}
	}
	return true
}

func (q *qp) unsignaledEnded(i int32, p *parent) {
	l := &q.unsignaled[p.wr.Priority]
	if l.first != i {
		return
	}
	if l.first = p.nextUnsignaled; l.first == none {
		l.last = none
	}
	q.unended--
}

// tellHeld gives out the completions that nothing holds any more, in their order.
func (q *qp) tellHeld() {
	if len(q.held) == 0 {
		return
	}
	keep := q.held[:0]
	for i := range q.held {
		if k := &q.held[i]; q.covered(k.seq) {
			q.emit(&k.wc)
		} else {
			keep = append(keep, *k)
		}
	}
	q.held = keep
}

func (q *qp) emit(wc *rdma.WC) {
	q.send.push(wc, q, q.uncovered+1)
	q.uncovered = 0
}

// erred takes a failed completion. It is false if that is not of a send.
func (q *qp) erred(wc *rdma.WC) bool {
	mask := uint32(len(q.ring) - 1)
	at, mine := q.failedAt(wc.ID)
	if !mine {
		return false
	}
	var unused rdma.WC
	for i := q.head; i != at; i++ { // unsignalled ones before the first failure
		if e := &q.ring[i&mask]; e.flags&(eDone|eSignaled) == 0 {
			q.ended(e, &unused)
			e.flags |= eDone
		}
	}
	q.ring[at&mask].flags |= eDone
	e := q.ring[at&mask]
	q.advance()
	q.fail()
	switch {
	case e.flags&eDrainMarker != 0:
		q.flushUnposted()
	case e.flags&eUser != 0:
		q.assign(wc)
		q.emit(wc)
	case e.parent == none:
		if wc.Status != rdma.StatusWRFlushErr && q.verdict == rdma.StatusSuccess {
			q.verdict = wc.Status
		}
	default:
		q.partFailed(e.parent, wc)
	}
	return true
}

// failedAt finds the entry of a failed completion. No signalled one of the user's is passed over: it would have
// completed first, and its ID can be that of a receive.
func (q *qp) failedAt(id uint64) (at uint32, found bool) {
	own := false
	for at = q.head; at != q.tail; at++ {
		e := &q.ring[at&uint32(len(q.ring)-1)]
		switch {
		case e.flags&eDone != 0:
		case e.id == id && !(own && e.flags&eUser != 0):
			return at, true
		case e.flags&eSignaled != 0:
			own = true
		}
	}
	return at, false
}

// partFailed ends the request of which a part failed: its first failure is the user's to see.
func (q *qp) partFailed(i int32, wc *rdma.WC) {
	p := &q.parents[i]
	p.out--
	if p.flags&(pReported|pRefused) == 0 {
		p.flags |= pReported
		if p.flags&pIssued == 0 {
			c := int(p.wr.Priority)
			if q.class[c].first = p.next; p.next == none {
				q.class[c].last = none
			}
			q.newHead(c)
			q.waiting--
		}
		q.reportFailed(i, p, wc.Status, wc.VendorErr)
	}
	if p.out == 0 && p.flags&pReported != 0 {
		q.release(i)
	}
}

func (q *qp) reportFailed(i int32, p *parent, st rdma.Status, vendor uint32) {
	wc := rdma.WC{ID: p.wr.ID, QPNum: q.num, Opcode: p.wr.Op.Completes(), Status: st, VendorErr: vendor}
	q.assign(&wc)
	q.emit(&wc)
	if p.flags&pSignaled == 0 {
		q.unsignaledEnded(i, p)
		q.tellHeld()
	}
}

// assign gives the status of our own request that failed first to the first flushed one of the user's.
func (q *qp) assign(wc *rdma.WC) {
	if q.verdict != rdma.StatusSuccess && wc.Status == rdma.StatusWRFlushErr {
		wc.Status, q.verdict = q.verdict, rdma.StatusSuccess
	}
}
