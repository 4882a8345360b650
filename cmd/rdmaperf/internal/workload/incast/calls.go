package incast

import (
	"context"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Incast by calls: each client has a connection of its own with several calls outstanding,
// whose requests are the payload; the answers are a few bytes. Who serves them is the
// layer's affair, as in any program that uses it: the threads of the Go runtime, or the
// pollers that the stack's name says.

// callDepth is how many calls a client has outstanding where nothing is said: as in
// throughput.
const callDepth = 16

// calls measures one point by calls.
func calls(ctx context.Context, r *engine.Run) error {
	sh, err := rpc.Shape(&r.Setup, callDepth)
	if err != nil {
		return err
	}
	return rpc.Run(ctx, r, sh, true, func(k *drive.Calls, res *reports.Result) {
		if k.Out != nil {
			drive.ComparedCalls(k.Measurement, res, k.Out.Ops, k.Out.Ops*int64(sh.Size+sh.Response))
			res.Latency, res.LatencyCorrected = nil, nil
			res.Detail = shares(sh, k.Out)
		}
	})
}
