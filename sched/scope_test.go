package sched_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// second is a rig on the same device, of a connection to addr.
func (r *rig) second(addr string) *rig {
	r.t.Helper()
	o := &rig{t: r.t, dev: r.dev, tier: r.tier, mem: r.mem}
	o.cq = need(r.tier.NewCQ(32))(r.t)
	o.connect(addr, rdma.QPConfig{SendCQ: o.cq, RecvCQ: o.cq, SendDepth: 8, MaxInline: 64}, 4)
	return o
}

// A window is shared as far as the scope goes: bulk of one QP leaves another a slice.
func TestScopeSharesTheWindow(t *testing.T) {
	for _, c := range []struct {
		scope sched.Scope
		peer  string // of the second connection; that of the first is ""
		want  int    // slices of the second
	}{{sched.ScopeQP, "", 4}, {sched.ScopeDevice, "elsewhere:1", 1}, {sched.ScopePeer, "", 1},
		{sched.ScopePeer, "elsewhere:1", 4}} {
		a := newRig(t, sched.Config{Scope: c.scope, Slice: kib, Window: 4 * kib}, 8, 4)
		b := a.second(c.peer)
		a.post(a.wr(1, rdma.OpWrite, 0, 64*kib))
		b.post(b.wr(2, rdma.OpWrite, 0, 64*kib))
		if len(a.seen) != 4 || len(b.seen) != c.want {
			t.Errorf("%s, peer %q: %d and %d slices at the device, want 4 and %d", c.scope, c.peer, len(a.seen),
				len(b.seen), c.want)
		}
		// Nobody waits for the other's completions, and the bytes come back to the window.
		if ids, _ := told(b.end()); len(ids) != 1 || len(b.seen) != 64 {
			t.Errorf("%s: the second ended %v with %d slices, want all while the first stands still", c.scope, ids,
				len(b.seen))
		}
		if ids, _ := told(a.end()); len(ids) != 1 || len(a.seen) != 64 {
			t.Errorf("%s: the first ended %v with %d slices", c.scope, ids, len(a.seen))
		}
		if under := sched.GroupUnder(a.qp); under != 0 {
			t.Errorf("%s: %d bytes are under way in the group behind the end", c.scope, under)
		}
		a.post(a.wr(3, rdma.OpWrite, 0, 64*kib))
		if len(a.seen) != 68 {
			t.Errorf("%s: %d slices of the next, want a whole window", c.scope, len(a.seen)-64)
		}
	}
}

// An urgent request goes past bulk of other QPs at once, and makes their windows narrow.
func TestScopeMakesOthersNarrow(t *testing.T) {
	for _, scope := range []sched.Scope{sched.ScopeQP, sched.ScopeDevice} {
		a := newRig(t, sched.Config{Scope: scope}, 8, 4)
		b := a.second("")
		sched.Widen(a.qp, 1) // a path of 1 GB/s
		for i := range 8 {   // twice what a window of 4 MiB takes
			a.post(a.wr(1+i, rdma.OpWrite, 0, home))
		}
		b.post(b.wr(9, rdma.OpSend, 1, 64))
		if len(b.seen) != 1 {
			t.Fatalf("%s: %d urgent requests at the device, want it", scope, len(b.seen))
		}
		if got := a.narrowed(); got != (scope == sched.ScopeDevice) {
			t.Errorf("%s: narrow behind the urgent request of another QP: %v", scope, got)
		}
	}
}

// What goes straight through counts in the group as well, and is bounded by what others have.
func TestScopeCountsStraightRequests(t *testing.T) {
	a := newRig(t, sched.Config{Scope: sched.ScopeDevice, Slice: 4 * kib, Window: 16 * kib}, 8, 4)
	b := a.second("")
	for i := range 3 {
		a.post(a.wr(1+i, rdma.OpWrite, 0, 3*kib))
	}
	if under := sched.GroupUnder(a.qp); under != 9*kib {
		t.Errorf("%d bytes under way in the group, want %d", under, 9*kib)
	}
	for i := range 4 {
		b.post(b.wr(1+i, rdma.OpWrite, 0, 3*kib))
	}
	if len(b.seen) != 2 {
		t.Errorf("%d requests of the second at the device, want the 2 that the window has room for", len(b.seen))
	}
	a.end()
	b.end()
}
