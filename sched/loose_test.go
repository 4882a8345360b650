package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// looseRig has local completions and a loose window of 16 KiB.
func looseRig(t *testing.T, due bool) *rig {
	r := newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 16 * kib}, 64, 16)
	sched.Loosen(r.qp, due)
	return r
}

// atDevice are the requests that reached the device, marks as -1.
func atDevice(r *rig) *[]int {
	var ids []int
	r.far.onPost = func(wr *rdma.SendWR) {
		if wr.RKey == 0 {
			ids = append(ids, -1)
		} else {
			ids = append(ids, int(wr.RKey))
		}
	}
	return &ids
}

// A loose window has no marks, and waits for none, however much is sent.
func TestLooseWindowWaitsForNothing(t *testing.T) {
	r := looseRig(t, false)
	seen := atDevice(r)
	for i := range 40 {
		r.post(r.wr(1+i, rdma.OpWrite, 0, (1+i%6)*kib)) // whole and in slices
	}
	if got, _ := told(r.poll()); len(got) != 40 || !slices.IsSorted(got) {
		t.Errorf("completions %v before the peer took anything, want all 40", got)
	}
	if slices.Contains(*seen, -1) {
		t.Errorf("the device got %v, want no mark", *seen)
	}
}

// One that is due all the same follows when enough was sent, once.
func TestLooseWindowProvesNowAndThen(t *testing.T) {
	for _, n := range []int{1, 8} { // straight, and in slices
		r := looseRig(t, true)
		seen := atDevice(r)
		for i := range 64 / n {
			r.post(r.wr(1+i, rdma.OpWrite, 0, n*kib))
			r.poll()
		}
		r.end()
		if marks := count(*seen); marks != 1 {
			t.Errorf("%d marks in 64 KiB of %d KiB each, want 1", marks, n)
		}
	}
}

// The first urgent request goes at once, a mark behind it, and nothing less urgent before the answer.
func TestUrgentRequestTightensALooseWindow(t *testing.T) {
	for _, size := range []int{kib, 4 * kib, 64 * kib} { // straight, at the limit, and in slices that wait
		r := looseRig(t, false)
		seen := atDevice(r)
		const urgent = 100
		for i := range max(24*kib/size, 12) { // more than a window
			r.post(r.wr(1+i, rdma.OpWrite, 0, size))
			if size <= 4*kib {
				r.poll()
			}
		}
		r.post(r.wr(urgent, rdma.OpSend, 7, 0))
		before := len(*seen)
		if k := slices.Index(*seen, urgent); k < 0 {
			t.Fatalf("bulk of %d: the urgent request waits behind %v", size, *seen)
		} else if want := []int{urgent, -1}; !slices.Equal((*seen)[k:], want) {
			t.Fatalf("bulk of %d: the device got %v from the urgent request on, want %v", size, (*seen)[k:], want)
		}
		for i := range 12 {
			r.post(r.wr(21+i, rdma.OpWrite, 0, size))
			r.poll()
		}
		if got := (*seen)[before:]; len(got) > 0 {
			t.Fatalf("bulk of %d: %v before the mark had an answer", size, got)
		}
		// Each answer makes room, for no more than a window.
		under := 0
		r.far.onPost = func(wr *rdma.SendWR) {
			if under += int(wr.Len()); under > 16*kib {
				t.Errorf("bulk of %d: %d bytes that have not arrived, window %d", size, under, 16*kib)
			}
		}
		for r.far.carryOut(1) > 0 {
			under = 0
			for _, e := range r.far.queue[r.far.next:] {
				under += int(e.wr.Len())
			}
			r.poll()
		}
		r.end()
		if len(r.far.queue) != 0 {
			t.Errorf("bulk of %d: %d requests never arrived", size, len(r.far.queue))
		}
	}
}

// When a loose window is tight again, late local completions prove nothing.
func TestLateLocalCompletionMakesNoRoom(t *testing.T) {
	r := looseRig(t, false)
	seen := atDevice(r)
	for i := range 12 {
		r.post(r.wr(1+i, rdma.OpWrite, 0, 4*kib)) // and completions wait
	}
	r.post(r.wr(100, rdma.OpSend, 7, 0))
	before := len(*seen)
	r.poll()
	r.poll()
	if got := (*seen)[before:]; len(got) > 0 {
		t.Errorf("%v before the mark had an answer", got)
	}
	r.end()
}

// An urgent request that must not overtake has a mark posted at once, whose answer makes room.
func TestUrgentRequestThatMustWaitIsMarked(t *testing.T) {
	r := looseRig(t, false)
	seen := atDevice(r)
	r.post(r.wr(1, rdma.OpWrite, 0, 64*kib)) // a window of it goes, in slices
	const urgent = 100
	wr := r.wr(urgent, rdma.OpWrite, 7, 64)
	wr.Flags |= rdma.Fence
	r.post(wr)
	if want := []int{1, 1, 1, 1, -1}; !slices.Equal(*seen, want) {
		t.Fatalf("the device got %v, want %v", *seen, want)
	}
	r.poll()
	if len(*seen) != 5 {
		t.Errorf("%v before the mark had an answer", (*seen)[5:])
	}
	r.far.carryOut(5)
	r.poll()
	if len(*seen) < 9 {
		t.Errorf("the device got %v: the answer made no room for a window", *seen)
	}
	tells(t, r.end(), []uint64{1, urgent})
}

// Marks take spare places of the completion queue: one that proves waits until others give one back.
func TestMarkWaitsForAPlaceInTheCompletionQueue(t *testing.T) {
	// Behind 146 QPs with 8 marks each there is room for 3 of the next QP, and for 1 of later ones.
	for _, others := range []int{146, 147} {
		r := newRigOn(t, newScript(true), sched.Config{Slice: 4 * kib, Window: 16 * kib}, 64, 16)
		cfg := rdma.QPConfig{SendCQ: r.cq, RecvCQ: r.cq, SendDepth: 64}
		for range others - 1 {
			need(r.tier.NewQP(cfg))(t)
		}
		r.connect("", cfg, 16)
		sched.Loosen(r.qp, false)
		seen := atDevice(r)
		r.post(r.wr(1, rdma.OpWrite, 0, 64*kib))
		wr := r.wr(100, rdma.OpWrite, 7, 64)
		wr.Flags |= rdma.Fence // it tightens the window, and goes last
		r.post(wr)
		if want := []int{1, 1, 1, 1}; !slices.Equal(*seen, want) {
			t.Fatalf("beside %d QPs, the device got %v while no place is free, want %v", others, *seen, want)
		}
		r.poll()
		if want := []int{1, 1, 1, 1, -1}; !slices.Equal(*seen, want) {
			t.Errorf("beside %d QPs, the device got %v when there is a place, want %v", others, *seen, want)
		}
		if got, _ := told(r.end()); !slices.Equal(got, []uint64{1, 100}) {
			t.Errorf("beside %d QPs: completions %v, want 1 and then 100", others, got)
		}
	}
}
