// Package workload is the table of workloads: one row for each room below this folder.
//
// # Ownership
//
// The rows are shared and never written to.
//
// # Limitations
//
// A workload is known by standing here: nothing registers itself.
package workload

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/clients"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
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
)

// Rooms are all workloads, in the order in which help and messages list them.
var Rooms = []*room.Room{
	latency.Room,
	throughput.Room,
	hol.Room,
	incast.Room,
	connect.Room,
	paramserver.Room,
	starvation.Room,
	rpc.Room,
	kv.Room,
	tensor.Room,
	register.Room,
	allreduce.Room,
	regions.Room,
	softrdma.Room,
	sharing.Room,
	locks.Room,
	qos.Room,
	mixed.Room,
	think.Room,
	clients.Room,
}

// Table is what the engine knows of them.
func Table() engine.Table { return room.Table(Rooms...) }

// Results are what a reader of documents has to know of them.
func Results() reports.Workloads {
	var all reports.Workloads
	for _, r := range Rooms {
		if w := r.Results; w != nil && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// Tables and Charts are those of workloads whose figures do not show their point by themselves.
func Tables() []text.OwnTables { return []text.OwnTables{holresults.Tables} }

// Charts are by the name of the workload.
func Charts() map[string][]page.OwnSection {
	return map[string][]page.OwnSection{
		hol.Name: {holresults.Section},
		rpc.Name: {callsresults.Gain, func(set *reports.Set) view.Section {
			return charts.FigureSection(set, rpc.Name)
		}},
	}
}
