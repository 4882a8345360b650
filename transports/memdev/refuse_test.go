package memdev

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// snapshot is the memory of a side, to show that nothing was placed.
func (e *side) snapshot() []byte { return bytes.Clone(e.buf.Bytes()) }

func fill(e *side, v byte) {
	for i := range e.buf.Bytes() {
		e.buf.Bytes()[i] = v
	}
}

func TestRemoteRefusals(t *testing.T) {
	const rw = rdma.LocalWrite
	access := func(x rdma.Access) func(a, b *setup) { return func(_, b *setup) { b.mr = x } }
	qpAccess := func(x rdma.Access) func(a, b *setup) { return func(_, b *setup) { b.qp.Access = x } }
	plain := func(a, b *setup) {}
	write := func(off, n int) func(a, b *side) rdma.SendWR {
		return func(a, b *side) rdma.SendWR { return b.at(off, wr(rdma.OpWrite, 2, a.sge(0, n))) }
	}
	read := func(off, n int) func(a, b *side) rdma.SendWR {
		return func(a, b *side) rdma.SendWR { return b.at(off, wr(rdma.OpRead, 2, a.sge(0, n))) }
	}
	op := func(op rdma.Opcode, off int) func(a, b *side) rdma.SendWR {
		return func(a, b *side) rdma.SendWR { return b.at(off, wr(op, 2, a.sge(0, 8))) }
	}
	inv := func(key func(b *side) uint32) func(a, b *side) rdma.SendWR {
		return func(a, b *side) rdma.SendWR {
			w := wr(rdma.OpSendInv, 2, a.sge(0, 8))
			w.InvKey = key(b)
			return w
		}
	}
	tests := []struct {
		name  string
		edit  func(a, b *setup)
		req   func(a, b *side) rdma.SendWR
		want  rdma.Status
		event rdma.EventType
	}{
		{"write one byte past the end", plain, write(4089, 8), rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write one byte before the start", plain, write(-1, 8), rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write at the end of the address space wraps", plain, func(a, b *side) rdma.SendWR {
			w := b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 8)))
			w.RemoteAddr = math.MaxUint64 - 3
			return w
		}, rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write with a changed key", plain, func(a, b *side) rdma.SendWR {
			w := b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 8)))
			w.RKey ^= 1
			return w
		}, rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write with the local key", plain, func(a, b *side) rdma.SendWR {
			w := b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 8)))
			w.RKey = b.mr.LKey()
			return w
		}, rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write without remote write", access(rw | rdma.RemoteRead | rdma.RemoteAtomic), write(0, 8),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"write_imm without remote write", access(rw | rdma.RemoteRead), op(rdma.OpWriteImm, 0),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"read without remote read", access(rw | rdma.RemoteWrite | rdma.RemoteAtomic), read(0, 8),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"read past the end", plain, read(4090, 8), rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"fetch_add without remote atomic", access(rw | rdma.RemoteRead | rdma.RemoteWrite), op(rdma.OpFetchAdd, 0),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"cmp_swap without remote atomic", access(rw | rdma.RemoteRead | rdma.RemoteWrite), op(rdma.OpCmpSwap, 0),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"fetch_add off alignment", plain, op(rdma.OpFetchAdd, 4), rdma.StatusRemInvReqErr, rdma.EventQPRequest},
		{"cmp_swap off alignment", plain, op(rdma.OpCmpSwap, 1), rdma.StatusRemInvReqErr, rdma.EventQPRequest},
		{"write that the QP does not admit", qpAccess(rdma.RemoteRead | rdma.RemoteAtomic), write(0, 8),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"read that the QP does not admit", qpAccess(rdma.RemoteWrite), read(0, 8), rdma.StatusRemAccessErr,
			rdma.EventQPAccess},
		{"atomic that the QP does not admit", qpAccess(rdma.RemoteWrite | rdma.RemoteRead), op(rdma.OpFetchAdd, 0),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"send_inv of an ordinary registration", access(rw | rdma.RemoteWrite),
			inv(func(b *side) uint32 { return b.mr.RKey() }), rdma.StatusRemAccessErr, rdma.EventQPAccess},
		{"send_inv of an unknown key", plain, inv(func(b *side) uint32 { return b.mr.RKey() + 1 }),
			rdma.StatusRemAccessErr, rdma.EventQPAccess},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{}, tc.edit)
			fill(a, 'a')
			fill(b, 'b')
			b.recv(10, b.sge(0, 64))
			b.recv(11, b.sge(0, 64))
			wantA, wantB := a.snapshot(), b.snapshot()
			first, last := b.at(0, wr(rdma.OpWrite, 1)), b.at(0, wr(rdma.OpWrite, 3))
			last.Flags = 0
			req := tc.req(a, b)
			req.Flags = 0 // errors complete whatever the flags
			a.post(first, req, last)

			same(t, "requester", outcomes(t, a.sq),
				append(good(1), outcome{2, tc.want}, outcome{3, rdma.StatusWRFlushErr}))
			same(t, "responder's receives", outcomes(t, b.rq), flushed(10, 11))
			same(t, "responder's events", b.events(), []rdma.EventType{tc.event})
			same(t, "requester's events", a.events(), nil)
			same(t, "states", []rdma.QPState{a.qp.State(), b.qp.State()}, []rdma.QPState{rdma.QPErr, rdma.QPErr})
			if !bytes.Equal(a.buf.Bytes(), wantA) || !bytes.Equal(b.buf.Bytes(), wantB) {
				t.Error("a refused request changed memory")
			}
		})
	}
}

// A registration of another domain is as good as none (IBTA 10.2.3).
func TestKeysOfAnotherDomainAreRefused(t *testing.T) {
	tests := []struct {
		name string
		use  func(a, b *side, foreign rdma.MR) rdma.SendWR
		on   func(a, b *side) *side // whose registration it is
		want rdma.Status
	}{
		{"as a write's target", func(a, b *side, m rdma.MR) rdma.SendWR {
			w := wr(rdma.OpWrite, 1, a.sge(0, 8))
			w.RKey, w.RemoteAddr = m.RKey(), m.Addr()
			return w
		}, func(a, b *side) *side { return b }, rdma.StatusRemAccessErr},
		{"as a read's source", func(a, b *side, m rdma.MR) rdma.SendWR {
			w := wr(rdma.OpRead, 1, a.sge(0, 8))
			w.RKey, w.RemoteAddr = m.RKey(), m.Addr()
			return w
		}, func(a, b *side) *side { return b }, rdma.StatusRemAccessErr},
		{"in send_inv", func(a, b *side, m rdma.MR) rdma.SendWR {
			w := wr(rdma.OpSendInv, 1)
			w.InvKey = m.RKey()
			return w
		}, func(a, b *side) *side { return b }, rdma.StatusRemAccessErr},
		{"as a send's source", func(a, b *side, m rdma.MR) rdma.SendWR {
			return wr(rdma.OpSend, 1, rdma.SGE{Addr: m.Addr(), Len: 8, LKey: m.LKey()})
		}, func(a, b *side) *side { return a }, rdma.StatusLocProtErr},
		{"in local_inv", func(a, b *side, m rdma.MR) rdma.SendWR {
			w := wr(rdma.OpLocalInv, 1)
			w.InvKey = m.RKey()
			return w
		}, func(a, b *side) *side { return a }, rdma.StatusLocProtErr},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{})
			own := tc.on(a, b)
			pd := must(own.dev.AllocPD())(t)
			m := must(own.dev.RegMR(pd, own.buf, allAccess))(t)
			b.recv(9, b.sge(0, 64))
			want := b.snapshot()
			a.post(tc.use(a, b, m))
			same(t, "requester", outcomes(t, a.sq), all(tc.want, 1))
			if !bytes.Equal(b.buf.Bytes(), want) {
				t.Error("memory changed")
			}
			ok(t, m.Close())
			ok(t, own.dev.FreePD(pd))
		})
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

func TestReceivesThatCannotTakeTheMessage(t *testing.T) {
	noWrite := func(_, b *setup) { b.mr = rdma.RemoteRead }
	plain := func(a, b *setup) {}
	tests := []struct {
		name         string
		edit         func(a, b *setup)
		recv         func(b *side) rdma.SGE
		local, there rdma.Status
	}{
		{"too short", plain, func(b *side) rdma.SGE { return b.sge(0, 7) }, rdma.StatusRemInvReqErr,
			rdma.StatusLocLenErr},
		{"unknown key", plain, func(b *side) rdma.SGE { s := b.sge(0, 64); s.LKey++; return s }, rdma.StatusRemOpErr,
			rdma.StatusLocProtErr},
		{"outside its registration", plain, func(b *side) rdma.SGE { return b.sge(4092, 64) }, rdma.StatusRemOpErr,
			rdma.StatusLocProtErr},
		{"memory without local write", noWrite, func(b *side) rdma.SGE { return b.sge(0, 64) }, rdma.StatusRemOpErr,
			rdma.StatusLocProtErr},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{}, tc.edit)
			fill(a, 'a')
			b.recv(1, tc.recv(b))
			b.recv(2, b.sge(0, 64))
			want := b.snapshot()
			a.post(wr(rdma.OpSend, 5, a.sge(0, 8)))
			same(t, "requester", outcomes(t, a.sq), all(tc.local, 5))
			same(t, "responder", outcomes(t, b.rq), []outcome{{1, tc.there}, {2, rdma.StatusWRFlushErr}})
			same(t, "states", []rdma.QPState{a.qp.State(), b.qp.State()}, []rdma.QPState{rdma.QPErr, rdma.QPErr})
			if !bytes.Equal(b.buf.Bytes(), want) {
				t.Error("memory changed")
			}
		})
	}
}

func TestRevokedKeysGiveNoAccess(t *testing.T) {
	revoke := map[string]func(a, b *side, m rdma.MR){
		"by closing the registration": func(_, _ *side, m rdma.MR) { m.Close() },
		"by local_inv": func(_, b *side, m rdma.MR) {
			w := wr(rdma.OpLocalInv, 1)
			w.InvKey = m.RKey()
			b.post(w)
		},
		"by send_inv": func(a, b *side, m rdma.MR) {
			b.recv(1)
			w := wr(rdma.OpSendInv, 1)
			w.InvKey = m.RKey()
			a.post(w)
		},
	}
	for name, how := range revoke {
		for _, op := range []rdma.Opcode{rdma.OpWrite, rdma.OpRead, rdma.OpFetchAdd, rdma.OpSendInv} {
			t.Run(fmt.Sprint(op, " ", name), func(t *testing.T) {
				a, b, _ := newPair(t, Config{})
				second := must(b.dev.RegMR(0, b.buf, allAccess))(t)
				defer second.Close()
				how(a, b, second)
				drain(t, a.sq)
				fill(a, 'a')
				want := b.snapshot()
				b.recv(3, b.sge(0, 64))
				w := b.at(0, wr(op, 2, a.sge(0, 8)))
				w.RKey, w.InvKey, w.CompareAdd = second.RKey(), second.RKey(), 1
				a.post(w)
				same(t, "status", outcomes(t, a.sq), all(rdma.StatusRemAccessErr, 2))
				if !bytes.Equal(b.buf.Bytes(), want) {
					t.Error("memory changed through a revoked key")
				}
			})
		}
	}
}

// Two registrations of one buffer are independent.
func TestRightsBelongToTheKeyNotToTheMemory(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	readOnly := must(b.dev.RegMR(0, b.buf, rdma.RemoteRead))(t)
	defer readOnly.Close()
	r, w := b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8))), b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 8)))
	r.RKey, w.RKey = readOnly.RKey(), readOnly.RKey()
	a.post(b.at(0, wr(rdma.OpWrite, 0, a.sge(0, 8))), r, w)
	same(t, "statuses", outcomes(t, a.sq), append(good(0, 1), outcome{2, rdma.StatusRemAccessErr}))
}

func TestKeysCannotBeGuessed(t *testing.T) {
	d := must(NewFabric(Config{Seed: 1}).Open(""))(t)
	buf := must(rdma.Alloc(64))(t)
	defer buf.Free()
	seen := map[uint32]bool{}
	repeats := 0
	var bits [32]int
	const n = 2000
	for range n {
		m := must(d.RegMR(0, buf, rdma.RemoteRead))(t)
		for _, k := range []uint32{m.LKey(), m.RKey()} {
			if seen[k] {
				repeats++
			}
			seen[k] = true
			for i := range bits {
				bits[i] += int(k >> i & 1)
			}
		}
		ok(t, m.Close())
	}
	if repeats > 2 { // by chance once in 10^9 runs
		t.Errorf("%d of %d keys were given before", repeats, 2*n)
	}
	for i, ones := range bits {
		// 2n fair coins: 8 standard deviations are 8·√(2n)/2 ≈ 253.
		if ones < n-253 || ones > n+253 {
			t.Errorf("bit %d is set in %d of %d keys", i, ones, 2*n)
		}
	}
}
