package rdma_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Events come out in their order, and of too many the newest.
func TestEventRingKeepsTheNewest(t *testing.T) {
	var r rdma.EventRing
	for n := range uint32(rdma.MaxEvents + 7) {
		r.Put(rdma.Event{QPNum: n})
	}
	for want := uint32(7); want < rdma.MaxEvents+7; want++ {
		if e, ok := r.Event(); !ok || e.QPNum != want {
			t.Fatalf("event %d, %v, want %d", e.QPNum, ok, want)
		}
	}
	if _, ok := r.Event(); ok {
		t.Error("an empty ring has an event")
	}
	r.Put(rdma.Event{QPNum: 1})
	if e, ok := r.Event(); !ok || e.QPNum != 1 {
		t.Errorf("%v, %v behind an empty ring", e, ok)
	}
}
