package incast

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	incastkind "github.com/rdmaperf/rdmaperf/reports/kinds/incast"
)

// Incast by calls: each client has a connection of its own with several calls outstanding,
// whose requests are the payload; the answers are a few bytes. Who serves them is the
// layer's affair, as in any program that uses it: the threads of the Go runtime, or the
// pollers that the stack's name says.

// callDepth is how many calls a client has outstanding where nothing is said: as in
// throughput.
const callDepth = 16

func byCall() *engine.Workload {
	w := rpc.CallsAs(Name, incastkind.Kind, &rpc.StreamOfCalls, callDepth)
	shape := w.Shape
	w.Shape = func(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
		if sh.Point.QPs == 0 {
			sh.QPs = DefaultClients
		}
		shape(sh, p, ab)
	}
	w.Result = func(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
		drive.CallFigures(m, res, out)
		drive.ComparedCalls(m, res, out.Ops, out.Ops*int64(m.Sh.Size+m.Sh.Response))
		res.Latency, res.LatencyCorrected = nil, nil
		res.Detail = shares(m.Sh, out)
	}
	return w
}
