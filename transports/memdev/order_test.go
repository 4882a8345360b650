package memdev

import (
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// manual is a clock that only the test moves.
type manual struct {
	mu  sync.Mutex
	now time.Time
}

func newManual() *manual { return &manual{now: time.Unix(1000, 0)} }

func (m *manual) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

func (m *manual) advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}

func delayed(t *testing.T, edits ...func(a, b *setup)) (a, b *side, clock *manual) {
	clock = newManual()
	a, b, _ = newPair(t, Config{ReadDelay: time.Millisecond, Now: clock.Now}, edits...)
	return a, b, clock
}

func TestLocalInvalidateWaitsForEarlierReads(t *testing.T) {
	a, b, clock := delayed(t)
	copy(b.buf.Bytes(), "data")
	inv := wr(rdma.OpLocalInv, 2)
	inv.InvKey = a.mr.RKey()
	a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 4))), inv)
	clock.advance(time.Millisecond)
	same(t, "completions", outcomes(t, a.sq), good(1, 2))
	same(t, "read", string(a.buf.Bytes()[:4]), "data")
}

func TestReadWithORDZeroFails(t *testing.T) {
	for _, op := range []rdma.Opcode{rdma.OpRead, rdma.OpFetchAdd, rdma.OpCmpSwap} {
		a, b, _ := newPair(t, Config{}, func(_, b *setup) { b.param.IRD = 0 })
		a.post(b.at(0, wr(op, 1, a.sge(0, 8))))
		same(t, op.String(), outcomes(t, a.sq), all(rdma.StatusLocQPOpErr, 1))
	}
}

func TestAnswersOfARevokedKeyDoNotArrive(t *testing.T) {
	a, b, clock := delayed(t)
	fill(b, 'b')
	m := must(b.dev.RegMR(0, b.buf, rdma.RemoteRead))(t)
	w := b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8)))
	w.RKey = m.RKey()
	a.post(w, b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 1))))
	ok(t, m.Close())
	clock.advance(time.Millisecond)
	same(t, "statuses", outcomes(t, a.sq), []outcome{{1, rdma.StatusRemAccessErr}, {2, rdma.StatusWRFlushErr}})
	if a.buf.Bytes()[0] != 0 {
		t.Error("the sink changed")
	}
}

func TestErrorsCompleteInOrder(t *testing.T) {
	a, b, _ := delayed(t)
	copy(b.buf.Bytes(), "data")
	bad := wr(rdma.OpSend, 2, a.sge(4095, 9))
	a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 4))), bad)
	same(t, "statuses", outcomes(t, a.sq), []outcome{{1, rdma.StatusSuccess}, {2, rdma.StatusLocProtErr}})
	same(t, "read", string(a.buf.Bytes()[:4]), "data")
}
