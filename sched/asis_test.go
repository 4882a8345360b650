package sched_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What need not wait goes below as the caller's own request, with its ID: up to the last byte of the window, alone
// however long it is, and up to the last read of ORD. What had to wait has an ID of the tier's.
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
