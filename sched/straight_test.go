package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// unsignaled are n requests of 1 KiB of whose success the user is not notified.
func (r *rig) unsignaled(op rdma.Opcode, n, size int) (wrs []rdma.SendWR) {
	for i := range n {
		w := r.wr(1+i, op, 0, size)
		w.Flags = 0
		wrs = append(wrs, w)
	}
	return wrs
}

// signals are the requests at the device that are signalled, counted from 1.
func (r *rig) signals() (at []int) {
	for i, w := range r.seen {
		if w.Flags&rdma.Signaled != 0 {
			at = append(at, 1+i)
		}
	}
	return at
}

// The window holds what goes straight through, too, to its last byte, and the first that has arrived makes room.
func TestStraightRequestsFillTheWindow(t *testing.T) {
	r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 16, 4)
	for i := range 6 {
		r.post(r.wr(1+i, rdma.OpWrite, 0, 4*kib))
	}
	r.reached(1, 2, 3, 4)
	r.far.carryOut(1)
	r.poll()
	r.reached(1, 2, 3, 4, 5)
	tells(t, r.end(), []uint64{2, 3, 4, 5, 6})
}

// A request of each quarter of the window is signalled below, as unsignalled ones tell of no room.
func TestUnsignalledRequestsTellOfRoom(t *testing.T) {
	for _, each := range []int{1, 3, 16} {
		r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 32, 4)
		for wrs := r.unsignaled(rdma.OpWrite, 16, kib); len(wrs) > 0; {
			k := min(each, len(wrs))
			r.post(wrs[:k]...)
			wrs = wrs[k:]
		}
		if want := []int{4, 8, 12, 16}; !slices.Equal(r.signals(), want) {
			t.Errorf("%d a call: signalled are %v, want %v", each, r.signals(), want)
		}
		if got := r.end(); len(got) > 0 {
			t.Errorf("%d a call: completions %v that nobody asked for", each, got)
		}
	}
	r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 32, 4)
	wrs := r.unsignaled(rdma.OpWrite, 8, kib)
	wrs[3].Flags = rdma.Signaled
	r.post(wrs...)
	if want := []int{4, 8}; !slices.Equal(r.signals(), want) {
		t.Errorf("beside one of the user's own: signalled are %v, want %v", r.signals(), want)
	}
}

// Reads go straight up to ORD, and the one that takes its last place is signalled unless another is.
func TestStraightReadsFillORD(t *testing.T) {
	for _, size := range []int{64, 3 * kib} { // straight, and in slices that wait
		r := newRig(t, sched.Config{Slice: kib, Window: 64 * kib}, 16, 3)
		r.post(r.unsignaled(rdma.OpRead, 5, size)...)
		if len(r.seen) != 3 || !slices.Equal(r.signals(), []int{3}) {
			t.Errorf("reads of %d: %d at the device, signalled are %v, want 3, the last", size, len(r.seen),
				r.signals())
		}
		r.end()
		if want := 5 * ((size + kib - 1) / kib); len(r.seen) != want {
			t.Errorf("reads of %d: %d at last, want %d", size, len(r.seen), want)
		}
	}
	r := newRig(t, sched.Config{Slice: kib, Window: 64 * kib}, 16, 3)
	wrs := r.unsignaled(rdma.OpRead, 5, 64)
	wrs[0].Flags = rdma.Signaled
	r.post(wrs[0])
	r.post(wrs[1:]...)
	if !slices.Equal(r.signals(), []int{1}) {
		t.Errorf("behind a signalled read signalled are %v, want that alone", r.signals())
	}
}

// Slices, and what goes straight behind them, leave places of the device's queue for the tier.
func TestPlacesAreLeftForTheTier(t *testing.T) {
	const depth, places = 4, 4 + 64 - 12
	for _, n := range []int{places - 2, places - 1, places, places + 5} {
		r := newRig(t, sched.Config{Slice: kib, Window: 1024 * kib}, depth, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, n*kib))
		if len(r.seen) != min(n, places) {
			t.Errorf("%d slices at the device of %d, want at most %d", len(r.seen), n, places)
		}
		r.post(r.wr(2, rdma.OpWrite, 0, 8), r.wr(3, rdma.OpWrite, 0, 8))
		if want := min(n+2, places); len(r.seen) != want {
			t.Errorf("behind %d slices, %d requests at the device, want %d", n, len(r.seen), want)
		}
		tells(t, r.end(), []uint64{1, 2, 3})
	}
}

// Many slices go below in one call, of 64 requests at most.
func TestSlicesGoBelowTogether(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 1024 * kib}, 256, 4)
	calls := map[int]int{}
	r.far.onPost = func(*rdma.SendWR) { calls[r.far.calls]++ }
	r.post(r.wr(1, rdma.OpWrite, 0, 200*kib))
	sum, most := 0, 0
	for _, n := range calls {
		sum, most = sum+n, max(most, n)
	}
	if len(calls) != 4 || most != 64 || sum != 200 {
		t.Errorf("%d slices in %d calls, most %d in one; want 200 in 4, of 64", sum, len(calls), most)
	}
	r.end()
}

// Where the queue signals all requests, however many are posted at once each completes once.
func TestEachOfAQueueThatSignalsAll(t *testing.T) {
	const n = 150
	r := newRig(t, sched.Config{Slice: kib, Window: 1024 * kib}, n, 4)
	r.connect("", rdma.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, SendDepth: n, SigAll: true}, 4)
	var ids []uint64
	for _, w := range r.unsignaled(rdma.OpWrite, n, 8) {
		ids = append(ids, w.ID)
	}
	r.post(r.unsignaled(rdma.OpWrite, n, 8)...)
	tells(t, r.end(), ids)
}

// The end of a read comes first: what leaves the registration is refused before anything is placed.
func TestOrderOfSlices(t *testing.T) {
	for op, want := range map[rdma.Opcode][]uint64{rdma.OpWrite: {0, 1, 2, 3}, rdma.OpRead: {3, 0, 1, 2}} {
		r := newRig(t, sched.Config{Slice: kib, Window: 16 * kib}, 8, 8)
		r.post(r.wr(1, op, 0, 4*kib))
		var got []uint64
		for _, w := range r.seen {
			got = append(got, (w.RemoteAddr-r.mem.Addr()-home)/kib)
			if w.RemoteAddr-r.mem.Addr()-home != w.SGE[0].Addr-r.mem.Addr() {
				t.Errorf("%s: bytes at %d go to %d", op, w.SGE[0].Addr-r.mem.Addr(), w.RemoteAddr-r.mem.Addr()-home)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: slices %v, want %v", op, got, want)
		}
		r.end()
	}
}

// A policy is asked whichever classes are ready, neighbours as well.
func TestPoliciesChooseBetweenNeighbours(t *testing.T) {
	even := [sched.Priorities]int{1, 1, 1, 1, 1, 1, 1, 1}
	r := newRig(t, sched.Config{Policy: sched.DRR, Weights: even, Slice: kib, Window: kib}, 16, 4)
	r.post(r.wr(9, rdma.OpWrite, 0, kib))
	r.post(r.wr(1, rdma.OpWrite, 0, 4*kib), r.wr(2, rdma.OpWrite, 1, 4*kib))
	r.end()
	if got := r.keys(); got[3] == got[4] || got[4] == got[5] {
		t.Errorf("on the wire %v, want the two in turn", got)
	}
}

// One that nothing overtook does not tell that it has ended: where marks are not due, nothing of it is signalled.
func TestUnsignalledSlicesAreSilent(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 64 * kib}, 16, 4)
	r.post(r.unsignaled(rdma.OpWrite, 1, 8*kib)...)
	if len(r.seen) != 8 || len(r.signals()) > 0 {
		t.Errorf("of %d slices, signalled are %v", len(r.seen), r.signals())
	}
}

// Requests that go below with a mark behind them are as many as a batch of the tier has places for, or go in two calls.
func TestManyRequestsBeforeAMark(t *testing.T) {
	for n := 62; n < 70; n++ {
		r := newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 256 * kib}, 128, 4)
		r.post(r.unsignaled(rdma.OpWrite, n-1, 3*kib)...)
		r.post(r.wr(n, rdma.OpWrite, 0, 3*kib))
		if tells(t, r.end(), []uint64{uint64(n)}, rdma.StatusSuccess); len(r.seen) != n {
			t.Errorf("%d requests: %d at the device", n, len(r.seen))
		}
	}
}

// Marks that are reads take half of ORD at most: the rest is the user's.
func TestMarksTakeHalfOfORD(t *testing.T) {
	for ord, want := range map[int]int{1: 1, 4: 2, 6: 3, 64: 4} {
		r := newRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 16 * kib}, 16, ord)
		seen := atDevice(r)
		r.post(r.wr(1, rdma.OpWrite, 0, 64*kib))
		r.poll()
		if marks := count(*seen); marks != want {
			t.Errorf("ORD %d: %d marks under way, want %d", ord, marks, want)
		}
		r.end()
	}
}

// The state, a system call on some devices, is looked at once in LookEvery polls, if work is held back.
func TestStateIsLookedAtSeldom(t *testing.T) {
	for held, want := range map[int]int{0: 0, 1: 3} {
		r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
		r.post(r.unsignaled(rdma.OpWrite, held, 16*kib)...)
		before := r.far.looks
		for range 3 * sched.LookEvery {
			r.poll()
		}
		if n := r.far.looks - before; n != want {
			t.Errorf("%d held back: %d looks in %d polls, want %d", held, n, 3*sched.LookEvery, want)
		}
		r.end()
	}
}

// A completion queue of one entry takes what a poll for nothing finds.
func TestTheSmallestCompletionQueue(t *testing.T) {
	a := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	a.cq = need(a.tier.NewCQ(1))(t)
	a.connect("", rdma.QPConfig{SendCQ: a.cq, RecvCQ: a.cq, SendDepth: 4}, 4)
	a.post(a.wr(1, rdma.OpWrite, 0, 8), a.wr(2, rdma.OpWrite, 0, 8), a.wr(3, rdma.OpWrite, 0, 8))
	a.far.carryOut(3)
	if n, err := a.cq.Poll(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	tells(t, a.poll(), []uint64{1, 2, 3})
}

// A window becomes narrow by a request that is more urgent than one that waits, and by no other.
func TestOnlyUrgentRequestsMakeAWindowNarrow(t *testing.T) {
	for class, narrow := range map[int]bool{0: false, 2: false, 3: false, 4: true} {
		r := newRig(t, sched.Config{}, 16, 4)
		sched.Widen(r.qp, 1) // a path of 1 GB/s
		for i := range 8 {
			r.post(r.wr(1+i, rdma.OpWrite, 3, home))
		}
		r.post(r.wr(9, rdma.OpWrite, class, 64))
		if got := r.narrowed(); got != narrow {
			t.Errorf("behind class %d narrow is %v, want %v", class, got, narrow)
		}
		r.end()
	}
}

// What need not wait goes below with its ID; what had to wait has one of the tier's.
func TestWhatNeedNotWaitKeepsItsID(t *testing.T) {
	for name, c := range map[string]struct {
		op   rdma.Opcode
		size int
		n    int // of these requests, so many keep their IDs
	}{
		"the window":         {rdma.OpWrite, 4 * kib, 4},
		"one that is longer": {rdma.OpWriteImm, 64 * kib, 1},
		"reads":              {rdma.OpRead, 64, 3},
	} {
		r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 16, 3)
		for i := range c.n + 1 {
			r.post(r.wr(1+i, c.op, 0, c.size))
		}
		r.end()
		if len(r.seen) != c.n+1 {
			t.Fatalf("%s: %d at the device, want %d", name, len(r.seen), c.n+1)
		}
		for i, w := range r.seen {
			if own := w.ID == uint64(1+i); own != (i < c.n) {
				t.Errorf("%s: request %d of %d keeps its ID: %v", name, 1+i, len(r.seen), own)
			}
		}
	}
}

// What goes below is remembered in no more places than it may take, in a power of two.
func TestTheRingIsAsLongAsItMustBe(t *testing.T) {
	for depth, want := range map[int]int{1: 128, 63: 128, 64: 128, 65: 256} {
		r := newRig(t, sched.Config{}, depth, 4)
		if n := sched.RingLen(r.qp); n != want {
			t.Errorf("depth %d: a ring of %d, want %d", depth, n, want)
		}
	}
}
