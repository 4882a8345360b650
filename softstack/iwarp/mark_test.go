package iwarp

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// slicesWithMarks are writes of size octets, each with a read of nothing behind it, as a scheduler posts its marks.
func slicesWithMarks(a, b *end, writes, size int) (wrs []rdma.SendWR) {
	for i := range writes {
		wrs = append(wrs, rdma.SendWR{Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, size)},
			RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr()}, rdma.SendWR{ID: uint64(i), Op: rdma.OpRead, Flags: rdma.Signaled})
	}
	return wrs
}

// A mark behind a slice is in the same call to the socket.
func TestAReadLeavesWithTheDataBeforeIt(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	must(t, a.qp.Drain())
	need(a.qp.PostSend(slicesWithMarks(a, b, 2, 120<<10)))(t)
	q := a.qp.(*qp)
	q.mu.Lock()
	q.setState(rdma.QPRTS)
	q.frameSome()
	if n := q.sqNext - q.sqHead; n != 2 {
		t.Errorf("the first batch has %d requests, want a write and its mark", n)
	}
	q.transmit()
	q.mu.Unlock()
	for i := range uint64(2) {
		a.want(b, rdma.WCRead, i, rdma.StatusSuccess)
	}
}

// A sender whose window is full waits for the answer to its first mark: it does not wait for the data behind that, too.
func TestAReadIsAnsweredBeforeTheDataBehindIt(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	q := b.qp.(*qp)
	q.mu.Lock()
	need(a.qp.PostSend(slicesWithMarks(a, b, 4, 120<<10)))(t)
	eventually(t, "the socket to take all", func() bool {
		s := a.qp.(*qp)
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.tx.empty() && s.sqNext == s.sqTail
	})
	eventually(t, "a read", func() bool {
		q.receive()
		return q.irq.len() > 0
	})
	if n := q.irq.len(); n != 1 {
		t.Errorf("%d reads wait for their answers, want 1", n)
	}
	q.mu.Unlock()
	for i := range uint64(4) {
		a.want(b, rdma.WCRead, i, rdma.StatusSuccess)
	}
}
