package results

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Of is what calls were, of any workload that stands on them; else nil.
func Of(r *reports.Result) *RPC {
	switch d := r.Detail.(type) {
	case *RPC:
		return d
	case interface{ CallDetail() *RPC }:
		return d.CallDetail()
	}
	return nil
}

// RPC is the detail of calls.
type RPC = drive.RPC

// Waits is how a carrier waits for each message: in the kernel by the mode event, or as the runtime's network poller
// does. The other modes poll for some time first.
func Waits(r *reports.Result) string {
	if m := Of(r).Mode; m == "" || m == "event" {
		return reports.PollingEvent
	}
	return ""
}

// cpuPerCall is the processor time of both sides in nanoseconds a call.
func cpuPerCall(r *reports.Result) float64 {
	if r.CPU == nil || r.Operations == 0 {
		return 0
	}
	return r.BothCPU() * 1e9 / float64(r.Operations)
}
