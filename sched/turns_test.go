package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A fenced request waits for what was posted before it, however much more urgent it is, and for
// nothing that came later.
func TestFencedRequestsGoInTheirTurn(t *testing.T) {
	for class := 1; class < sched.Priorities; class++ {
		r := newRig(t, sched.Config{Slice: kib, Window: kib}, 16, 4)
		fenced := r.wr(3, rdma.OpWrite, class, kib)
		fenced.Flags |= rdma.Fence
		r.post(r.wr(1, rdma.OpWrite, 0, kib), r.wr(2, rdma.OpWrite, 0, kib), fenced, r.wr(4, rdma.OpWrite, 0, kib))
		r.end()
		if want := []uint32{1, 2, 3, 4}; !slices.Equal(r.keys(), want) {
			t.Errorf("class %d: on the wire %v, want %v", class, r.keys(), want)
		}
	}
}

// What is whole and does not fit behind bytes of which nothing will tell is given a mark: where
// those were unsignalled, and where they completed when they were sent.
func TestWhatFindsNoRoomIsMarked(t *testing.T) {
	for _, c := range []struct {
		name  string
		loose bool
		flags rdma.SendFlags
	}{
		{"sent in silence, loose", true, 0},
		{"sent in silence", false, 0},
		{"told at once", false, rdma.Signaled},
	} {
		r := newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 16 * kib}, 16, 4)
		if c.loose {
			sched.Loosen(r.qp, false)
		}
		first := r.wr(1, rdma.OpWrite, 0, 3*kib)
		first.Flags = c.flags
		r.post(first)
		r.poll()
		seen := atDevice(r)
		r.post(r.wr(2, rdma.OpSend, 0, 14*kib))
		if !slices.Equal(*seen, []int{-1}) {
			t.Errorf("%s: the device got %v, want a mark", c.name, *seen)
		}
		if ids, _ := told(r.end()); !slices.Equal(ids, []uint64{2}) {
			t.Errorf("%s: completions %v, want that of the send", c.name, ids)
		}
	}
}

// A mark that goes below with requests and fails is found by its ID: nobody sees a completion of
// it, and the first request behind it that is flushed has its status.
func TestAMarkBehindStraightRequestsFails(t *testing.T) {
	r := markedRig(t)
	wrs, ids := kibibytes(r, 1, 8)
	r.post(wrs...)
	r.far.failAfter, r.far.status = 8, rdma.StatusRemAccessErr
	r.far.carryOut(9)
	more, rest := kibibytes(r, 9, 2)
	r.post(more...)
	got, st := told(r.end())
	if want := append(ids, rest...); !slices.Equal(got, want) {
		t.Fatalf("completions %v, want %v", got, want)
	}
	if !slices.Equal(st[8:], []rdma.Status{rdma.StatusRemAccessErr, rdma.StatusWRFlushErr}) {
		t.Errorf("behind the mark %v, want its status at the first", st[8:])
	}
}

// A device that refuses a slice which would tell a loose window what is sent ends the
// connection, and all that waits is flushed, each once.
func TestALooseWindowIsRefusedASlice(t *testing.T) {
	for k := range 4 {
		r := looseRig(t, false)
		n := 0
		r.far.refuses = func(w *rdma.SendWR) bool {
			n++
			return n > k
		}
		r.post(r.wr(1, rdma.OpWrite, 0, 64*kib), r.wr(2, rdma.OpWrite, 0, 64*kib))
		ids, st := told(r.end())
		if !slices.Equal(ids, []uint64{1, 2}) ||
			!slices.Equal(st, []rdma.Status{rdma.StatusLocQPOpErr, rdma.StatusWRFlushErr}) {
			t.Errorf("refused behind %d slices: completions %v %v, want 1 failed and 2 flushed", k, ids, st)
		}
	}
}
