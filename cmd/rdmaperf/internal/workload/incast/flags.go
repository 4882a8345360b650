package incast

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	incastresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "incast"

// Room is its row of the table.
var Room = &room.Room{
	Name:       Name,
	Runner:     new(flags),
	Results:    incastresults.Results,
	Summary:    "many clients to one server thread, or by calls to one server",
	Group:      "Workloads incast and connect",
	OwnThreads: true,
	Means:      [][]string{{"clients"}},
	Names:      []string{"clients"},
	Ops:        []string{"write", "call"},
	Sizes:      []int{64, 64 << 10, 1 << 20},
	Flags:      func() room.Flags { return new(flags) },
}

type flags struct {
	room.None
	clients string
}

func (f *flags) Register(set *pflag.FlagSet) {
	values.ListVar(set, &f.clients, "clients", strconv.Itoa(DefaultClients),
		"incast: how many clients, a thread and a connection each, send to one server thread (calls: to one server); "+
			"a comma list or FROM:TO:STEP is a point each")
}

// Check refuses other numbers of threads and connections.
func (f *flags) Check(c *room.Common) error { return c.CheckOwnThreads(Name, "clients") }

// Points are all operations, sizes and numbers of clients.
func (f *flags) Points(p *engine.Plan, c *room.Common) ([]engine.Point, error) {
	clients, err := values.Counts("clients", f.clients)
	if err != nil {
		return nil, err
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	return room.Checked(c.Product(Room.Ops, Room.Sizes, func(op string, size int) (points []engine.Point) {
		for _, n := range clients {
			pt := engine.Point{Workload: Name, Op: op, Size: size, QPs: n}
			pt.Needs = drive.StreamNeeds(p, pt)
			points = append(points, rpc.CallPoint(pt, true))
		}
		return points
	}), check)
}
