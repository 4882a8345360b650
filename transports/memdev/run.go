package memdev

import (
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (q *qp) run() {
	for q.step() {
	}
	q.update()
}

func (q *qp) step() bool {
	if q.sq.next == q.sq.tail || q.stalled {
		return false
	}
	e := q.sq.at(q.sq.next)
	switch q.state {
	case rdma.QPRTS:
	case rdma.QPSQD:
		// Only a message already begun goes on (IBTA 10.3.1.5).
		if e.phase != started {
			return false
		}
	default:
		return false
	}
	if q.held(e) {
		return false
	}
	st, then := q.execute(e)
	switch {
	case q.state == rdma.QPErr: // the device died under the request
		return false
	case st != rdma.StatusSuccess:
		q.abort(st)
	case then == noReceive:
		return q.stall(e)
	case then == answerLater:
		e.phase, e.due = waiting, q.dev.fab.clock()+q.dev.fab.cfg.ReadDelay
		q.sq.pending++
		q.sq.next++
	default:
		e.phase = done
		q.sq.next++
		for q.sq.head < q.sq.next && q.sq.at(q.sq.head).phase == done {
			q.retire(rdma.StatusSuccess)
		}
	}
	return true
}

func (q *qp) held(e *sendEntry) bool {
	if q.sq.pending == 0 {
		return false
	}
	faults := &q.dev.fab.faults
	switch {
	case e.wr.Flags&rdma.Fence != 0: // IBTA 10.8.3.3
		return !faults.hit(FaultIgnoreFence, q.dev)
	case e.wr.Op == rdma.OpLocalInv: // earlier requests are not affected (IBTA 10.6.5.1)
		return true
	case e.wr.Op.Responds() && q.sq.pending >= q.ord:
		return !faults.hit(FaultExceedORD, q.dev)
	}
	return false
}

func (q *qp) retire(st rdma.Status) {
	e := q.sq.at(q.sq.head)
	q.sq.head++
	wc := rdma.WC{ID: e.wr.ID, QPNum: q.num, Status: st}
	if st == rdma.StatusSuccess {
		if e.wr.Flags&rdma.Signaled == 0 && !q.sigAll && !q.dev.fab.faults.hit(FaultSignalAll, q.dev) {
			q.sq.unsignaled++
			return
		}
		wc.Opcode = e.wr.Op.Completes()
		if e.wr.Op.Responds() {
			wc.ByteLen = uint32(e.wr.Len())
		}
	}
	q.sendCQ.push(q, wc, &q.sq.slots, false)
}

// abort ends the oldest request not executed with st, after those before it, of which one may be the first error.
func (q *qp) abort(st rdma.Status) {
	for q.sq.head < q.sq.next {
		if e := q.sq.at(q.sq.head); e.phase == waiting {
			q.sq.pending--
			if bad := q.answer(e); bad != rdma.StatusSuccess {
				st = bad
				break
			}
		}
		q.retire(rdma.StatusSuccess)
	}
	if q.sq.head < q.sq.tail {
		q.retire(st)
		q.sq.next = max(q.sq.next, q.sq.head)
	}
	if q.dev.fab.faults.hit(FaultStayUp, q.dev) && q.sq.pending == 0 {
		return
	}
	q.enterErr()
}

// enterErr moves the QP to ERR and flushes it. A peer that waits for a receive here tries again and finds nobody.
func (q *qp) enterErr() {
	if q.state == rdma.QPErr {
		return
	}
	q.to(rdma.QPErr)
	q.unstall()
	q.sq.pending = 0
	q.flush()
	if q.srq != nil {
		q.dev.raise(rdma.EventLastWQEReached, q.num)
	}
	q.update()
	if q.peer != nil && q.peer.stalled {
		q.peer.retry()
	}
}

// flush ends everything posted with StatusWRFlushErr, unless a fault keeps it.
func (q *qp) flush() {
	f := q.dev.fab
	switch {
	case q.late:
	case f.faults.hit(FaultNoFlush, q.dev):
		q.sq.head, q.sq.next = q.sq.tail, q.sq.tail
		if q.srq == nil {
			q.rq.count = 0
		}
	case f.faults.hit(FaultLateFlush, q.dev):
		q.late = true
		f.late = append(f.late, q)
		f.attention.Add(1)
	default:
		q.flushNow()
	}
}

// flushNow completes each once and in order (IBTA 10.3.1.7). Receives of an SRQ stay for the other QPs.
func (q *qp) flushNow() {
	for q.sq.head < q.sq.tail {
		q.retire(rdma.StatusWRFlushErr)
	}
	q.sq.next = q.sq.tail
	if q.srq != nil {
		return
	}
	for q.rq.count > 0 {
		wr := q.rq.pop()
		q.recvCQ.push(q, rdma.WC{ID: wr.ID, QPNum: q.num, Status: rdma.StatusWRFlushErr}, &q.rq.slots, false)
	}
}

// stall notices a receive at once, so n tries are one wait of n timers.
func (q *qp) stall(e *sendEntry) (again bool) {
	if q.rnr == 0 {
		q.abort(rdma.StatusRNRRetryExcErr)
		return true
	}
	if e.phase != started {
		e.phase = started
		if q.rnr < rnrForever {
			q.rnrUntil = q.dev.fab.clock() + time.Duration(q.rnr)*q.dev.fab.cfg.RNRTimer
		}
	}
	q.stalled = true
	if s := q.peer.srq; s != nil {
		s.stalled = append(s.stalled, q)
	}
	return false
}

func (q *qp) retry() {
	q.unstall()
	q.run()
}

func (q *qp) unstall() {
	if !q.stalled {
		return
	}
	q.stalled = false
	if s := q.peer.srq; s != nil {
		s.stalled = slices.DeleteFunc(s.stalled, func(o *qp) bool { return o == q })
	}
}

// never is later than every clock.
const never = time.Duration(1<<63 - 1)

func (q *qp) due() time.Duration {
	at := never
	if q.stalled && q.rnrUntil > 0 {
		at = q.rnrUntil
	}
	if q.sq.pending > 0 {
		for i := q.sq.head; i < q.sq.next; i++ {
			if e := q.sq.at(i); e.phase == waiting {
				return min(at, e.due)
			}
		}
	}
	return at
}

func (q *qp) tick(now time.Duration) {
	for q.sq.head < q.sq.next {
		e := q.sq.at(q.sq.head)
		if e.phase == waiting {
			if e.due > now {
				break
			}
			q.sq.pending--
			if st := q.answer(e); st != rdma.StatusSuccess {
				q.retire(st)
				q.enterErr()
				return
			}
		}
		q.retire(rdma.StatusSuccess)
	}
	if q.stalled && q.rnrUntil > 0 && q.rnrUntil <= now {
		q.unstall()
		q.abort(rdma.StatusRNRRetryExcErr)
	}
	q.run()
}

// update brings what depends on the queues up to date: the timer list, the end of a drain, a Disconnect that waits.
func (q *qp) update() {
	if !q.stalled {
		q.rnrUntil = 0
	}
	if want := q.sq.pending > 0 || q.rnrUntil > 0; want != q.timed {
		q.dev.fab.setTimed(q, want)
	}
	if q.state == rdma.QPSQD && !q.drained && q.sq.head == q.sq.next && !q.stalled {
		q.drained = true
		q.dev.raise(rdma.EventSQDrained, q.num)
	}
	if q.watchMark > 0 && (q.sq.head >= q.watchMark || q.state == rdma.QPErr) {
		q.watchMark = 0
		signal(q.watch)
	}
}

// setTimed keeps the list of running timers. Blocked calls must look again when the first one starts.
func (f *Fabric) setTimed(q *qp, on bool) {
	q.timed = on
	if !on {
		f.timed = slices.DeleteFunc(f.timed, func(o *qp) bool { return o == q })
		f.attention.Add(-1)
		return
	}
	f.timed = append(f.timed, q)
	f.attention.Add(1)
	if len(f.timed) == 1 && f.waiters > 0 {
		close(f.kick)
		f.kick = make(chan struct{})
	}
}
