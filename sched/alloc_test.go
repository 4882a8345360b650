package sched_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Nothing is allocated per request, cut or not, whatever the policy.
func TestRequestsAllocateNothing(t *testing.T) {
	for _, p := range sched.Policies() {
		for _, size := range []uint32{64, 256 << 10} {
			dev := wrapped(t, newNull(), sched.Config{Policy: p, Slice: 16 << 10, Window: 64 << 10})
			qp, cq := bareQueue(t, sched.WithoutKeeper(dev), 64)
			wrs, wcs := requests(16, size), make([]rdma.WC, 32)
			for i := range wrs {
				wrs[i].Priority = uint8(i % sched.Priorities)
			}
			rounds(t, qp, cq, wrs, wcs, 64)
			if n := testing.AllocsPerRun(100, func() { rounds(t, qp, cq, wrs, wcs, 16) }); n != 0 {
				t.Errorf("%s, %d bytes: %v allocations for 16 requests", p, size, n)
			}
		}
	}
}
