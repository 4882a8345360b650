package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// markedRig has local completions, and a window that asks for a mark every 8 of its requests of a kibibyte.
func markedRig(t *testing.T) *rig {
	return newRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 16 * kib}, 64, 4)
}

func kibibytes(r *rig, first, n int) (wrs []rdma.SendWR, ids []uint64) {
	for id := first; id < first+n; id++ {
		wrs = append(wrs, r.wr(id, rdma.OpWrite, 0, kib))
		ids = append(ids, uint64(id))
	}
	return wrs, ids
}

// A mark goes below together with the requests that it is behind: alone it would be a message of its own on the wire.
func TestMarkGoesBelowWithTheRequests(t *testing.T) {
	r := markedRig(t)
	marks, posts, wires := 0, 0, 0
	r.far.onPost = func(wr *rdma.SendWR) {
		switch {
		case wr.Op != rdma.OpRead:
			wires++
		case wires%8 != 0:
			t.Errorf("a mark behind %d requests", wires)
		default:
			marks++
		}
	}
	for ; posts < 20; posts++ {
		wrs, ids := kibibytes(r, 1+4*posts, 4)
		r.post(wrs...)
		got, st := told(r.end())
		if !slices.Equal(got, ids) ||
			slices.ContainsFunc(st, func(s rdma.Status) bool { return s != rdma.StatusSuccess }) {
			t.Fatalf("completions %v %v, want %v", got, st, ids)
		}
	}
	if marks != posts/2 || r.far.calls != posts {
		t.Errorf("%d marks in %d calls, want %d in %d", marks, r.far.calls, posts/2, posts)
	}
}

// A device that takes the requests and refuses the mark behind them ends the connection, and what it took completes.
func TestDeviceRefusesAMark(t *testing.T) {
	r := markedRig(t)
	r.far.refuses = func(wr *rdma.SendWR) bool { return wr.Op == rdma.OpRead }
	wrs, ids := kibibytes(r, 1, 8)
	r.post(wrs...)
	tells(t, r.end(), ids)
	wrs, ids = kibibytes(r, 9, 2)
	r.post(wrs...)
	got, st := told(r.end())
	if !slices.Equal(got, ids) ||
		slices.ContainsFunc(st, func(s rdma.Status) bool { return s != rdma.StatusWRFlushErr }) {
		t.Errorf("completions of %v %v behind it, want %v flushed", got, st, ids)
	}
}

// Of requests that go below with a mark, the device takes those before one that it refuses, and no mark.
func TestDeviceRefusesARequestBeforeAMark(t *testing.T) {
	r := markedRig(t)
	wrs, _ := kibibytes(r, 1, 8)
	r.far.refuses = func(wr *rdma.SendWR) bool { return wr.ID == 6 }
	if n, err := r.qp.PostSend(wrs); n != 5 || err != rdma.ErrInvalid {
		t.Fatalf("post: %d, %v, want 5, %v", n, err, rdma.ErrInvalid)
	}
	r.far.refuses = nil
	r.post(wrs[5:]...)
	got, st := told(r.end())
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) ||
		slices.ContainsFunc(st, func(s rdma.Status) bool { return s != rdma.StatusSuccess }) {
		t.Errorf("completions %v %v, want %v", got, st, want)
	}
	if reads := slices.IndexFunc(r.far.queue, func(e scriptEntry) bool { return e.wr.Op == rdma.OpRead }); reads >= 0 ||
		r.far.calls != 2 {
		t.Errorf("a mark is at %d of the queue, %d calls", reads, r.far.calls)
	}
}

// A wide window of eight parts grows where all of them have arrived before one poll and a request still waits for room.
func TestWideWindowGrowsWhereItRanDryBesideWhatWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		size    int // bytes of each of two writes
		arrived int
		grown   int
	}{
		{"all arrived", 1 << 20, 8, 1},
		{"one is under way", 1 << 20, 7, 0},
		{"nothing waits", 32 * kib, 8, 0},
	} {
		r := newRig(t, sched.Config{}, 64, 4)
		sched.Widen(r.qp, 0.0109) // bytes a nanosecond, which is 480 KiB in 48 ms
		r.post(r.wr(1, rdma.OpWrite, 0, c.size), r.wr(2, rdma.OpWrite, 0, c.size))
		r.far.carryOut(c.arrived)
		var wcs [16]rdma.WC
		need(r.cq.Poll(wcs[:]))(t)
		if got := sched.Grown(r.qp); got != c.grown {
			t.Errorf("%s: grew %d times, want %d", c.name, got, c.grown)
		}
		r.end()
	}
}
