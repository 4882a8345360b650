package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What is posted on a connection that is over holds back nobody who shares a window with it, also
// where no completion proves that anything arrived.
func TestWhatIsPostedBehindAFailureHoldsNobodyBack(t *testing.T) {
	for _, local := range []bool{false, true} {
		for _, refused := range []bool{false, true} {
			a := newRigOn(t, newScript(local), sched.Config{Scope: sched.ScopeDevice, Slice: kib, Window: 4 * kib},
				16, 4)
			b := a.second("")
			if refused {
				a.far.refuses = func(w *rdma.SendWR) bool { return w.RKey != 0 }
				a.post(a.wr(1, rdma.OpWrite, 0, 2*kib))
			} else if err := a.qp.Fail(); err != nil {
				t.Fatal(err)
			}
			a.far.refuses = nil
			a.post(a.wr(2, rdma.OpWrite, 0, 4*kib), a.wr(3, rdma.OpWrite, 0, 4*kib))
			if n := sched.GroupUnder(b.qp); n != 0 {
				t.Errorf("local %v, refused %v: %d bytes under way", local, refused, n)
			}
			b.post(b.wr(1, rdma.OpWrite, 0, 64*kib))
			if len(b.seen) != 4 {
				t.Errorf("local %v, refused %v: %d slices, want a whole window", local, refused, len(b.seen))
			}
			a.end()
			b.end()
		}
	}
}

// Behind a slice that the device refused, posts are flushed, each once, however many they are.
func TestPostsBehindARefusalAreFlushed(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 16 * kib}, 32, 4)
	r.far.refuses = func(w *rdma.SendWR) bool { return w.RKey == 1 && len(r.seen) > 2 }
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	for i := range 16 {
		r.post(r.wr(2+i, rdma.OpWrite, 0, 4*kib))
	}
	ids, st := told(r.end())
	if len(ids) != 17 || !slices.IsSorted(ids) {
		t.Fatalf("completions %v, want 1 to 17", ids)
	}
	for i, s := range st[1:] {
		if s != rdma.StatusWRFlushErr {
			t.Errorf("%d: %s, want %s", ids[1+i], s, rdma.StatusWRFlushErr)
		}
	}
}

// A request of which a part was refused has failed, although all that the device took of it
// succeeds and nothing more will come of it: flushed where the device is closed.
func TestPartsBeforeARefusalAreNoSuccess(t *testing.T) {
	for refusal, want := range map[error]rdma.Status{rdma.ErrClosed: rdma.StatusWRFlushErr,
		rdma.ErrInvalid: rdma.StatusLocQPOpErr} {
		r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, 6*kib))
		r.far.carryOut(4)
		r.far.refuses = func(*rdma.SendWR) bool { return true }
		r.far.refusedBy = refusal
		var two [2]rdma.WC
		if n, err := r.cq.Poll(two[:]); n != 0 || err != nil || len(r.seen) != 4 {
			t.Fatalf("%d completions, %v, %d slices", n, err, len(r.seen))
		}
		if ids, st := told(r.end()); !slices.Equal(ids, []uint64{1}) || st[0] != want {
			t.Errorf("%v: completions %v %v, want %s of 1", refusal, ids, st, want)
		}
	}
}

// A connection that ends without anything that waits needs no drain marker.
func TestNoMarkerBehindNothing(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	if err := r.qp.Fail(); err != nil || r.far.calls != 0 {
		t.Errorf("%v, %d posts at the device, want none", err, r.far.calls)
	}
}

// A request that need not be cut goes below as it was posted, also when it had to wait: empty elements, too.
func TestWhatIsNotCutGoesBelowAsItIs(t *testing.T) {
	for _, op := range []rdma.Opcode{rdma.OpWrite, rdma.OpRead} {
		r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
		w := r.wr(2, op, 0, 64)
		w.NumSGE = 3
		w.SGE[1] = rdma.SGE{Addr: r.mem.Addr() + 4096, LKey: 5}
		w.SGE[2] = rdma.SGE{Addr: r.mem.Addr() + 8192, Len: 32, LKey: 6}
		r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), w)
		r.end()
		got := r.seen[len(r.seen)-1]
		if got.ID == 2 || got.RKey != 2 || got.NumSGE != 3 || got.SGE != w.SGE || got.RemoteAddr != w.RemoteAddr {
			t.Errorf("%s: %+v, want %+v", op, got, w)
		}
	}
}

// An inline request without bytes has none when it had to wait.
func TestNothingInlineStaysNothing(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
	w := r.wr(2, rdma.OpSend, 0, 0)
	w.Flags |= rdma.Inline
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), w)
	r.end()
	if got := r.seen[len(r.seen)-1]; got.RKey != 2 || got.NumSGE != 0 {
		t.Errorf("%+v, want no element", got)
	}
}
