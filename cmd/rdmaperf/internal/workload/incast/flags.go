package incast

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	incastresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "incast"

// Workload implements workload.Workload.
type Workload struct {
	clients string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    incastresults.Results,
		Summary:    "many clients sending to one server: bandwidth and fairness",
		Examples:   "rdmaperf run --transport tcp,iwarp --workload incast --clients 2,8,32 --op write -s 64K",
		Group:      "Workloads incast and connect",
		OwnThreads: true,
		Ops:        []string{"write", "call"},
		Sizes:      []int{64, 64 << 10, 1 << 20},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	values.ListVar(set, &f.clients, "clients", strconv.Itoa(DefaultClients),
		"incast: how many clients, a thread and a connection each, send to one server thread (calls: to one server); "+
			"a comma list or FROM:TO:STEP is a point each")
}

// Points are all operations, sizes and numbers of clients.
func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if err := c.CheckOwnThreads(Name, "clients"); err != nil {
		return nil, err
	}
	clients, err := values.Counts("clients", f.clients)
	if err != nil {
		return nil, err
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	m := f.Meta()
	return workload.Checked(c.Product(m.Ops, m.Sizes, func(op string, size int) (points []engine.Point) {
		for _, n := range clients {
			pt := engine.Point{Workload: Name, Op: op, Size: size, QPs: n}
			pt.Needs = drive.StreamNeeds(c.Plan, pt)
			points = append(points, rpc.CallPoint(pt, true))
		}
		return points
	}), check)
}
