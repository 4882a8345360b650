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
		tells(t, r.end(), ids, rdma.StatusSuccess)
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
	tells(t, r.end(), ids, rdma.StatusWRFlushErr)
}

// Of requests that go below with a mark, the device takes those before one that it refuses, and no mark.
func TestDeviceRefusesARequestBeforeAMark(t *testing.T) {
	r := markedRig(t)
	wrs, ids := kibibytes(r, 1, 8)
	r.far.refuses = func(wr *rdma.SendWR) bool { return wr.ID == 6 }
	r.takes(5, rdma.ErrInvalid, wrs...)
	r.far.refuses = nil
	r.post(wrs[5:]...)
	tells(t, r.end(), ids, rdma.StatusSuccess)
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

// oneMark has ORD 2 and local completions, so one mark under way at most, and a window of 16 KiB.
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

// A fenced request waits for all that was posted before it, and for nothing that came later.
func TestFencedRequestsGoInTheirTurn(t *testing.T) {
	for class := 1; class < sched.Priorities; class++ {
		r := newRig(t, sched.Config{Slice: kib, Window: kib}, 16, 4)
		fenced := r.wr(3, rdma.OpWrite, class, kib)
		fenced.Flags |= rdma.Fence
		r.post(r.wr(1, rdma.OpWrite, 0, kib), r.wr(2, rdma.OpWrite, 0, kib), fenced, r.wr(4, rdma.OpWrite, 0, kib))
		r.end()
		r.reached(1, 2, 3, 4)
	}
}

// What does not fit behind bytes of which nothing will tell is given a mark.
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
		tells(t, r.end(), []uint64{2})
	}
}

// A mark that fails behind requests is found by its ID; the first one flushed has its status.
func TestAMarkBehindStraightRequestsFails(t *testing.T) {
	r := markedRig(t)
	wrs, ids := kibibytes(r, 1, 8)
	r.post(wrs...)
	r.far.failAfter, r.far.status = 8, rdma.StatusRemAccessErr
	r.far.carryOut(9)
	more, rest := kibibytes(r, 9, 2)
	r.post(more...)
	all := r.end()
	tells(t, all, append(ids, rest...))
	tells(t, all[8:], rest, rdma.StatusRemAccessErr, rdma.StatusWRFlushErr)
}

// A refused slice of a loose window ends the connection, and what waits is flushed once.
func TestALooseWindowIsRefusedASlice(t *testing.T) {
	for k := range 4 {
		r := looseRig(t, false)
		n := 0
		r.far.refuses = func(w *rdma.SendWR) bool {
			n++
			return n > k
		}
		r.post(r.wr(1, rdma.OpWrite, 0, 64*kib), r.wr(2, rdma.OpWrite, 0, 64*kib))
		tells(t, r.end(), []uint64{1, 2}, rdma.StatusLocQPOpErr, rdma.StatusWRFlushErr)
	}
}
