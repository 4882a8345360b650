package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// oneMark is a connection with ORD 2 and local completions, which therefore has one mark under
// way at most, and a window of 16 KiB.
func oneMark(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 16 * kib}, 64, 2)
}

// count is how often a mark is among what reached the device.
func count(ids []int) (marks int) {
	for _, id := range ids {
		if id < 0 {
			marks++
		}
	}
	return marks
}

// Marks under way are as many as there are places for, also where nothing has to wait.
func TestStraightRequestsHaveAsManyMarksAsThereArePlacesFor(t *testing.T) {
	r := oneMark(t)
	seen := atDevice(r)
	for i, w := range r.unsignaled(rdma.OpWrite, 16, kib) {
		r.post(w)
		if want := min((1+i)/8, 1); count(*seen) != want {
			t.Errorf("%d marks behind %d requests, want %d", count(*seen), 1+i, want)
		}
	}
	r.end()
}

// Where a window is loose, marks of both kinds share the places.
func TestMarksOfBothKindsShareTheirPlaces(t *testing.T) {
	r := oneMark(t)
	sched.Loosen(r.qp, false)
	r.post(r.unsignaled(rdma.OpWrite, 12, kib)...)
	if want := []int{4}; !slices.Equal(r.signals(), want) {
		t.Errorf("signalled are %v, want %v: the second mark has no place", r.signals(), want)
	}
	r = oneMark(t)
	sched.Loosen(r.qp, false)
	r.post(r.unsignaled(rdma.OpWrite, 4, kib)...)
	seen := atDevice(r)
	sched.Loosen(r.qp, true) // one that proves is due
	r.post(r.unsignaled(rdma.OpWrite, 8, kib)...)
	if count(*seen) != 0 {
		t.Errorf("the device got %v, want no mark beside the one that is under way", *seen)
	}
	r.end()
}

// Requests that are too many to go below with a mark are followed by one when just enough bytes went.
func TestAMarkFollowsManyRequests(t *testing.T) {
	for n, want := range map[int]int{127: 0, 128: 1} {
		r := newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 256 * kib}, 128, 4)
		seen := atDevice(r)
		r.post(r.unsignaled(rdma.OpWrite, n, kib)...)
		if count(*seen) != want || len(*seen) != n+want {
			t.Errorf("%d marks among %d at the device, want %d behind %d", count(*seen), len(*seen), want, n)
		}
	}
}

// A mark that is a read takes a place of ORD like any other.
func TestMarksCountAsReads(t *testing.T) {
	for _, ord := range []int{2, 4} {
		r := newRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 16 * kib}, 16, ord)
		marks := 0
		r.far.onPost = func(w *rdma.SendWR) {
			reads := 1
			for _, e := range r.far.queue {
				if e.wr.Op == rdma.OpRead && !e.arrived {
					reads++
				}
			}
			if w.RKey == 0 {
				marks++
			}
			if w.Op == rdma.OpRead && reads > ord {
				t.Errorf("%d reads under way, ORD is %d", reads, ord)
			}
		}
		r.post(r.wr(1, rdma.OpWrite, 0, 64*kib))
		for i := range ord {
			r.post(r.wr(2+i, rdma.OpRead, 7, 64))
		}
		if got := len(r.end()); marks == 0 || got != 1+ord {
			t.Errorf("ORD %d: %d marks, %d completions", ord, marks, got)
		}
	}
}

// A mark of its own on a connection without reads is a write of nothing, whatever its completions say.
func TestMarksWithoutReadsAreWrites(t *testing.T) {
	for _, local := range []bool{false, true} {
		r := newRigOn(t, newScript(local), sched.Config{Slice: 4 * kib, Window: 4 * kib}, 16, 0)
		var marks []rdma.Opcode
		r.far.onPost = func(w *rdma.SendWR) {
			if w.RKey == 0 {
				marks = append(marks, w.Op)
			}
		}
		r.post(append(r.unsignaled(rdma.OpWrite, 1, 512), r.wr(2, rdma.OpWrite, 0, 4*kib))...)
		if !slices.Equal(marks, []rdma.Opcode{rdma.OpWrite}) {
			t.Errorf("local %v: marks %v, want a write", local, marks)
		}
		if got := len(r.end()); got != 1 {
			t.Errorf("local %v: %d completions, want 1", local, got)
		}
	}
}
