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
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/sharing"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/softrdma"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/tensor"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/think"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/kinds"
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

// Kinds are those of their results, in the order in which they stand where several do,
// such as columns of CSV: those that have always been there, and then as in the table.
func Kinds() []*reports.Kind {
	all := kinds.All()
	for _, r := range Rooms {
		if k := r.Kind; k != nil && !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}
