package memdev

import (
	"encoding/binary"
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

func TestUnsignalledSuccessIsSilentAndFreesItsPlaceLater(t *testing.T) {
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.qp.SendDepth = 8 })
	unsignaled := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1)))
	unsignaled.Flags = 0
	for range 7 {
		a.post(unsignaled)
	}
	same(t, "after 7 unsignalled", outcomes(t, a.sq), nil)
	a.post(b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 1))))
	if n, err := a.qp.PostSend([]rdma.SendWR{unsignaled}); n != 0 || err != rdma.ErrQueueFull {
		t.Errorf("the ninth of eight = %d, %v, want 0, ErrQueueFull", n, err)
	}
	same(t, "after the signalled one", outcomes(t, a.sq), good(2))
	for range 8 {
		a.post(unsignaled)
	}
}

func TestSigAllCompletesEverything(t *testing.T) {
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.qp.SigAll = true })
	w := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1)))
	w.Flags = 0
	a.post(w)
	same(t, "completions", outcomes(t, a.sq), good(1))
}

func TestReceivesMatchInPostOrder(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	for i := range uint64(10) {
		b.recv(i, b.sge(0, 8))
	}
	for i := range uint64(10) {
		a.post(wr(rdma.OpSend, i, a.sge(0, int(i%8))))
	}
	same(t, "receives", outcomes(t, b.rq), good(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
	same(t, "sends", outcomes(t, a.sq), good(0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
}

// delayed is a pair whose reads and atomics take a millisecond.
func delayed(t *testing.T, edits ...func(a, b *setup)) (a, b *side, clock *manual) {
	clock = newManual()
	a, b, _ = newPair(t, Config{ReadDelay: time.Millisecond, Now: clock.Now}, edits...)
	return a, b, clock
}

func TestCompletionsWaitForEarlierReads(t *testing.T) {
	a, b, clock := delayed(t)
	copy(b.buf.Bytes(), "old")
	a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(100, 3))), b.at(8, wr(rdma.OpWrite, 2, a.sge(0, 1))))
	same(t, "before the answer", outcomes(t, a.sq), nil)
	clock.advance(time.Millisecond)
	same(t, "after it", outcomes(t, a.sq), good(1, 2))
	same(t, "read", string(a.buf.Bytes()[100:103]), "old")
}

func TestFenceHoldsUntilReadsAndAtomicsAreDone(t *testing.T) {
	a, b, clock := delayed(t)
	binary.NativeEndian.PutUint64(b.buf.Bytes(), 41)
	add := b.at(0, wr(rdma.OpFetchAdd, 1, a.sge(0, 8)))
	add.CompareAdd = 1
	// The fetched value itself is written on: only a fence makes that right.
	fenced := b.at(64, wr(rdma.OpWrite, 3, a.sge(0, 8)))
	fenced.Flags |= rdma.Fence
	free := b.at(128, wr(rdma.OpWrite, 2, a.sge(512, 1)))
	a.buf.Bytes()[512] = 1
	a.post(add, free, fenced)
	if b.buf.Bytes()[128] != 1 {
		t.Error("an unfenced write waited")
	}
	clock.advance(time.Millisecond)
	same(t, "order", outcomes(t, a.sq), good(1, 2, 3))
	if got := binary.NativeEndian.Uint64(b.buf.Bytes()[64:]); got != 41 {
		t.Errorf("the fenced write carried %d, want the fetched 41", got)
	}
}

func TestFenceWithNothingOutstandingDoesNotWait(t *testing.T) {
	a, b, _ := delayed(t)
	w := b.at(0, wr(rdma.OpWrite, 1, a.sge(0, 1)))
	w.Flags |= rdma.Fence
	a.post(w)
	same(t, "completion", outcomes(t, a.sq), good(1))
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

func TestReadsBeyondORDAreHeldBack(t *testing.T) {
	a, b, clock := delayed(t, func(a, b *setup) { a.param.ORD, b.param.IRD = 9, 2 })
	if a.param.ORD != 2 || b.param.IRD != 2 {
		t.Fatalf("negotiated ORD %d and IRD %d, want 2", a.param.ORD, b.param.IRD)
	}
	for i := range uint64(5) {
		a.post(b.at(0, wr([]rdma.Opcode{rdma.OpRead, rdma.OpFetchAdd}[i%2], i, a.sge(8*int(i), 8))))
	}
	for _, want := range [][]outcome{nil, good(0, 1), good(2, 3), good(4)} {
		same(t, "a round trip later", outcomes(t, a.sq), want)
		clock.advance(time.Millisecond)
	}
	same(t, "events at the responder", b.events(), nil)
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

// A local fault must not overtake reads that were asked before it.
func TestErrorsCompleteInOrder(t *testing.T) {
	a, b, _ := delayed(t)
	copy(b.buf.Bytes(), "data")
	bad := wr(rdma.OpSend, 2, a.sge(4095, 9))
	a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 4))), bad)
	same(t, "statuses", outcomes(t, a.sq), []outcome{{1, rdma.StatusSuccess}, {2, rdma.StatusLocProtErr}})
	same(t, "read", string(a.buf.Bytes()[:4]), "data")
}

func TestAtomicsFromManyQPsLoseNothing(t *testing.T) {
	const pairs, adds = 4, 500
	f := NewFabric(Config{})
	target := newSide(t, f, "target", ordinary())
	var wg sync.WaitGroup
	for p := range pairs {
		a := newSide(t, f, string(rune('a'+p)), ordinary())
		b := newSide(t, f, string(rune('A'+p)), ordinary())
		connect(t, a, b)
		counter := must(b.dev.RegMR(0, target.buf, allAccess))(t)
		t.Cleanup(func() { ok(t, counter.Close()) })
		wg.Go(func() {
			w := wr(rdma.OpFetchAdd, 1, a.sge(0, 8))
			w.RKey, w.RemoteAddr, w.CompareAdd = counter.RKey(), counter.Addr(), 1
			var wcs [4]rdma.WC
			for range adds {
				a.qp.PostSend([]rdma.SendWR{w})
				a.sq.Poll(wcs[:])
			}
		})
	}
	wg.Wait()
	if got := binary.NativeEndian.Uint64(target.buf.Bytes()); got != pairs*adds {
		t.Errorf("counter = %d, want %d", got, pairs*adds)
	}
}
