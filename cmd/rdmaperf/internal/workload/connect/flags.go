package connect

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	connectresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "connect"

// Room is its row of the table.
var Room = &room.Room{
	Name:       Name,
	Runner:     new(flags),
	Results:    connectresults.Results,
	Summary:    "connection set-up, from dialling to the first answer",
	Group:      "Workloads incast and connect",
	OwnThreads: true,
	Means:      [][]string{{"concurrency"}},
	Names:      []string{"concurrency"},
	Ops:        []string{"read", "call"},
	Sizes:      []int{64},
	Flags:      func() room.Flags { return new(flags) },
}

type flags struct {
	room.None
	atOnce string
}

func (f *flags) Register(set *pflag.FlagSet) {
	values.ListVar(set, &f.atOnce, "concurrency", "1",
		"connect: how many connections are set up at once, a thread each; a comma list or FROM:TO:STEP is a point each")
}

// Check refuses other numbers of threads and connections.
func (f *flags) Check(c *room.Common) error { return c.CheckOwnThreads(Name, "concurrency") }

// Points are all operations, sizes and numbers of connections at once.
func (f *flags) Points(_ *engine.Plan, c *room.Common) ([]engine.Point, error) {
	atOnce, err := values.Counts("concurrency", f.atOnce)
	if err != nil {
		return nil, err
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	return room.Checked(c.Product(Room.Ops, Room.Sizes, func(op string, size int) (points []engine.Point) {
		for _, n := range atOnce {
			points = append(points, rpc.CallPoint(engine.Point{Workload: Name, Op: op, Size: size, QPs: n,
				Needs: needs(op)}, false))
		}
		return points
	}), check)
}
