package grpcrdma

import (
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// takeCredit reads the peer's credit, if a whole one is there.
func (c *Conn) takeCredit() {
	w := &c.tx
	got, ok := loadCredit(w.cell)
	if ok && w.held.Load() {
		w.held.Store(false)
	}
	if !ok || got.bytes == w.consumed.Load() && got.notices == w.acked.Load() {
		return
	}
	if !got.plausible(credit{w.sent.Load(), w.noticed.Load()}) {
		c.cutOff(errCredit)
		return
	}
	// Several may read it at once, and one may be late: positions only grow.
	raise(&w.consumed, got.bytes)
	raise(&w.acked, got.notices)
}

func raise(a *atomic.Uint64, v uint64) {
	for old := a.Load(); old < v && !a.CompareAndSwap(old, v); old = a.Load() {
	}
}

// creditDue is true when half the ring or half the notices are to be returned.
func (c *Conn) creditDue() bool {
	w := &c.tx
	return c.rx.pos.Load()-w.returned.Load() >= c.rx.size.Load()/2 ||
		w.noticesTaken.Load()-w.returnedNotices.Load() >= noticeDepth/2
}

// returnCredit writes how far this side has read to the peer, when that is due or forced.
func (c *Conn) returnCredit(must bool) {
	if !must && !c.creditDue() {
		return
	}
	w := &c.tx
	w.post.Lock()
	defer w.post.Unlock()
	if !must && !c.creditDue() {
		return // another goroutine did
	}
	if w.used.Load() > sendDepth-2 {
		w.creditDue.Store(true) // posted with the next completion
		return
	}
	w.creditDue.Store(false)
	now := credit{c.rx.pos.Load(), w.noticesTaken.Load()}
	w.returned.Store(now.bytes)
	w.returnedNotices.Store(now.notices)
	if err := w.sendCredit(c.qp, now, w.notices); err != nil {
		c.fail(err)
	}
}

// sendCredit writes the peer's credit cell. The caller holds post.
func (w *writer) sendCredit(qp rdma.QP, now credit, notify bool) error {
	slot := w.creditsSent % creditSlots * creditSlot
	w.creditsSent++
	b := w.credits[slot : slot+creditSlot]
	putCredit(b, now)
	n := w.write(w.cellKey, w.cellAddr, rdma.SGE{Addr: w.credAddr + slot, Len: cellLen, LKey: w.credKey})
	if notify {
		n = w.notice(noticeCredit, b[cellLen:],
			rdma.SGE{Addr: w.credAddr + slot + cellLen, Len: noticeLen, LKey: w.credKey})
	}
	return w.send(qp, n, false)
}

// probe writes the last credit once more, without a notice: a peer that is gone does not
// acknowledge it, and the connection fails.
func (c *Conn) probe() {
	w := &c.tx
	w.post.Lock()
	defer w.post.Unlock()
	if w.used.Load() > sendDepth-2 {
		return // what is on its way fails as well
	}
	if err := w.sendCredit(c.qp, credit{w.returned.Load(), w.returnedNotices.Load()}, false); err != nil {
		c.fail(err)
	}
}
