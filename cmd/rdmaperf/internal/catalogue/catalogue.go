// Package catalogue lists all workloads.
package catalogue

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	meshresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/clients"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/locks"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/mixed"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/qos"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/regions"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/sharing"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/softrdma"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/tensor"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/think"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/view"
	"github.com/rdmaperf/rdmaperf/transports"
)

// All makes the workloads of one command line, in the order in which help and messages list them. Tests add to it.
var All = func() []workload.Workload {
	return []workload.Workload{
		new(latency.Workload),
		new(throughput.Workload),
		new(hol.Workload),
		new(incast.Workload),
		new(connect.Workload),
		new(paramserver.Workload),
		new(starvation.Workload),
		new(rpc.Workload),
		new(kv.Workload),
		new(tensor.Workload),
		new(register.Workload),
		new(allreduce.Workload),
		new(regions.Workload),
		new(softrdma.Workload),
		new(sharing.Workload),
		new(locks.Workload),
		new(qos.Workload),
		new(mixed.Workload),
		new(think.Workload),
		new(clients.Workload),
	}
}

// Table is what the engine knows of them.
func Table() engine.Table { return workload.Table(All()...) }

// Results are what a reader of documents has to know of them.
func Results() reports.Workloads {
	all := reports.Workloads{meshresults.Results}
	for _, w := range All() {
		if r := w.Meta().Results; r != nil {
			all = append(all, r)
		}
	}
	return all
}

// Tables and Charts are those of workloads whose figures do not show their point by themselves.
func Tables() []text.OwnTables { return []text.OwnTables{hol.Tables} }

// Charts are by the name of the workload.
func Charts() map[string][]page.OwnSection {
	return map[string][]page.OwnSection{
		hol.Name:         {hol.Section},
		meshresults.Name: {meshresults.Section},
		rpc.Name: {callsresults.Gain, func(set *reports.Set) view.Section {
			return charts.FigureSection(set, rpc.Name)
		}},
	}
}

// OnePoints leaves of each question one point: a small message, a small call, a stream of large ones, and probes
// behind the bulk of their own QP or connection.
func OnePoints(points []engine.Point) []engine.Point {
	const small, large = 64, 1 << 20
	return slices.DeleteFunc(slices.Clone(points), func(pt engine.Point) bool {
		call := pt.Op == transports.KindCall.String()
		switch pt.Workload {
		case latency.Name:
			return pt.Size != small || !call && pt.Op != transports.KindSend.String()
		case throughput.Name:
			return pt.Size != large
		case hol.Name:
			return pt.Variant != hol.SameQP
		}
		return false
	})
}
