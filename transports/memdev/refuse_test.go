package memdev

import (
	"bytes"
	"math"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
