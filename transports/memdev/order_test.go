package memdev

import (
	"bytes"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func (e *side) snapshot() []byte { return bytes.Clone(e.buf.Bytes()) }

func fill(e *side, v byte) {
	for i := range e.buf.Bytes() {
		e.buf.Bytes()[i] = v
	}
}

// A registration of another domain is as good as none (IBTA 10.2.3); that reads, writes and sends refuse
// its keys is shown by acc/other-domain and acc/lkey-other-domain of the conformance suite.
func TestKeysOfAnotherDomainAreNotInvalidated(t *testing.T) {
	for op, want := range map[rdma.Opcode]rdma.Status{rdma.OpSendInv: rdma.StatusRemAccessErr,
		rdma.OpLocalInv: rdma.StatusLocProtErr} {
		a, b, _ := newPair(t, Config{})
		own := a
		if op == rdma.OpSendInv {
			own = b
		}
		pd := must(own.dev.AllocPD())(t)
		m := must(own.dev.RegMR(pd, own.buf, allAccess))(t)
		b.recv(9, b.sge(0, 64))
		before := b.snapshot()
		w := wr(op, 1)
		w.InvKey = m.RKey()
		a.post(w)
		same(t, op.String(), outcomes(t, a.sq), all(want, 1))
		if !bytes.Equal(b.buf.Bytes(), before) {
			t.Errorf("%s changed memory", op)
		}
		ok(t, m.Close())
		ok(t, own.dev.FreePD(pd))
	}
}

func TestLocalFaultsStayLocal(t *testing.T) {
	bad := func(e *side, off, n int) rdma.SGE {
		s := e.sge(off, n)
		s.LKey++
		return s
	}
	noWrite := func(a, _ *setup) { a.mr = rdma.RemoteRead }
	plain := func(a, b *setup) {}
	tests := []struct {
		name string
		edit func(a, b *setup)
		req  func(a, b *side) rdma.SendWR
	}{
		{"send from an unknown key", plain, func(a, b *side) rdma.SendWR { return wr(rdma.OpSend, 1, bad(a, 0, 8)) }},
		{"send whose second element is outside", plain, func(a, b *side) rdma.SendWR {
			return wr(rdma.OpSend, 1, a.sge(0, 8), a.sge(4090, 8))
		}},
		{"send from the remote key", plain, func(a, b *side) rdma.SendWR {
			s := a.sge(0, 8)
			s.LKey = a.mr.RKey()
			return wr(rdma.OpSend, 1, s)
		}},
		{"write from a wrapping range", plain, func(a, b *side) rdma.SendWR {
			s := a.sge(0, 8)
			s.Addr = math.MaxUint64 - 2
			return b.at(0, wr(rdma.OpWrite, 1, s))
		}},
		{"read into memory without local write", noWrite, func(a, b *side) rdma.SendWR {
			return b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8)))
		}},
		{"fetch_add into memory without local write", noWrite, func(a, b *side) rdma.SendWR {
			w := b.at(0, wr(rdma.OpFetchAdd, 1, a.sge(0, 8)))
			w.CompareAdd = 1
			return w
		}},
		{"local_inv of an unknown key", plain, func(a, b *side) rdma.SendWR {
			w := wr(rdma.OpLocalInv, 1)
			w.InvKey = a.mr.RKey() + 1
			return w
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{}, tc.edit)
			b.recv(9, b.sge(0, 64))
			wantA, wantB := a.snapshot(), b.snapshot()
			a.post(tc.req(a, b))
			same(t, "requester", outcomes(t, a.sq), all(rdma.StatusLocProtErr, 1))
			same(t, "peer's completions", outcomes(t, b.rq), nil)
			same(t, "peer's events", b.events(), nil)
			same(t, "states", []rdma.QPState{a.qp.State(), b.qp.State()}, []rdma.QPState{rdma.QPErr, rdma.QPRTS})
			if !bytes.Equal(a.buf.Bytes(), wantA) || !bytes.Equal(b.buf.Bytes(), wantB) {
				t.Error("memory changed")
			}
			// The peer was not told, but finds nobody.
			b.post(a.at(0, wr(rdma.OpWrite, 2, b.sge(0, 1))))
			same(t, "peer's next request", outcomes(t, b.sq), all(rdma.StatusRetryExcErr, 2))
		})
	}
}

// same fails with the difference.
func same[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestLocalInvalidateRevokesBothKeys(t *testing.T) {
	for _, byRKey := range []bool{true, false} {
		a, b, _ := newPair(t, Config{})
		w := wr(rdma.OpLocalInv, 1)
		if w.InvKey = b.mr.LKey(); byRKey {
			w.InvKey = b.mr.RKey()
		}
		b.post(w)
		same(t, "local_inv", drain(t, b.sq), []rdma.WC{{ID: 1, QPNum: b.qp.Num(), Opcode: rdma.WCLocalInv}})
		a.post(b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 4))))
		same(t, "write afterwards", outcomes(t, a.sq), all(rdma.StatusRemAccessErr, 2))
	}
}

func TestWordNeighboursSurviveTheLastByte(t *testing.T) {
	b := must(rdma.Alloc(64))(t)
	defer b.Free()
	for i := range b.Bytes() {
		b.Bytes()[i] = 0xee
	}
	for i := range 8 {
		storeByte(&b.Bytes()[8+i], byte(i))
		if got := rdma.LoadByte(b.Bytes(), 8+i); got != byte(i) {
			t.Errorf("byte %d = %#x, want %#x", i, got, i)
		}
	}
	if b.Bytes()[7] != 0xee || b.Bytes()[16] != 0xee {
		t.Error("a neighbour changed")
	}
}
