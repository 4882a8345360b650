//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const nullSteps = 2000

// pingPongOverhead is the median ns of a PingPong on a provider that does nothing; 0 without memory for it.
var pingPongOverhead = sync.OnceValue(func() float64 {
	q, end := nullQP()
	if q == nil {
		return 0
	}
	defer end()
	took := make([]int64, nullSteps)
	for i := range took {
		took[i] = q.step()
	}
	slices.Sort(took)
	return float64(took[nullSteps/2])
})

var nullOps = rdma.Ops(rdma.OpSend, rdma.OpSendImm, rdma.OpWrite, rdma.OpWriteImm, rdma.OpRead, rdma.OpFetchAdd,
	rdma.OpCmpSwap)

type nullStepper struct {
	qp
	v   [1]rdma.PingPongStep
	wcs [4]rdma.WC
}

// nullQP makes one, nil without memory, and what frees it.
func nullQP() (*nullStepper, func()) {
	t := C.vb_new_table()
	if t == nil {
		return nil, nil
	}
	var c *C.struct_vb_cq
	q := C.vb_null(t, &c)
	if q == nil {
		C.vb_free_table(t)
		return nil, nil
	}
	d := &Device{caps: rdma.Caps{MaxSGE: 1, MaxReadSGE: 1}}
	both := &cq{dev: d, c: c}
	n := &nullStepper{qp: qp{dev: d, c: q, send: both, recv: both, ops: nullOps, maxMsg: 64}}
	n.state.Store(uint32(rdma.QPRTS))
	n.v[0] = rdma.PingPongStep{Ask: rdma.SendWR{Op: rdma.OpRead, Flags: rdma.Signaled, NumSGE: 1,
		SGE: [rdma.MaxSGE]rdma.SGE{{Len: 64}}}, Looks: 1, Until: rdma.UntilSend}
	return n, func() {
		C.vb_null_free(q, c)
		C.vb_free_table(t)
	}
}

// step takes one step and returns its time in ns, or -1.
func (n *nullStepper) step() int64 {
	n.v[0].HasAsk = true
	if k, err := n.PingPong(n.v[:], n.wcs[:]); err != nil || k != 1 || !n.v[0].Met {
		return -1
	}
	return n.v[0].Took
}

func pingPongCounter() string {
	if _, counter := pingPongClock(); counter {
		return "time stamp counter, calibrated to CLOCK_MONOTONIC"
	}
	return ""
}

// pingPongClock is a reading of the clock of PingPong, in ns, and whether that is the processor's counter.
func pingPongClock() (ns int64, counter bool) {
	var c C.int
	ns = int64(C.vb_clock_now(&c))
	return ns, c != 0
}
