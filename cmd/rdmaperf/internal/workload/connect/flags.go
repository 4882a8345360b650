package connect

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	connectresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "connect"

// Workload implements workload.Workload.
type Workload struct {
	atOnce string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    connectresults.Results,
		Summary:    "connection set-up time, stage by stage",
		Examples:   "rdmaperf run --transport tcp,iwarp --workload connect --concurrency 1,16",
		Group:      "Workloads incast and connect",
		OwnThreads: true,
		Ops:        []string{"read", "call"},
		Sizes:      []int{64},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	values.ListVar(set, &f.atOnce, "concurrency", "1",
		"connect: how many connections are set up at once, a thread each; a comma list or FROM:TO:STEP is a point each")
}

// Points are all operations, sizes and numbers of connections at once.
func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if err := c.CheckOwnThreads(Name, "concurrency"); err != nil {
		return nil, err
	}
	atOnce, err := values.Counts("concurrency", f.atOnce)
	if err != nil {
		return nil, err
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	m := f.Meta()
	return workload.Checked(c.Product(m.Ops, m.Sizes, func(op string, size int) (points []engine.Point) {
		for _, n := range atOnce {
			points = append(points, rpc.CallPoint(engine.Point{Workload: Name, Op: op, Size: size, QPs: n,
				Needs: needs(op)}, false))
		}
		return points
	}), check)
}
