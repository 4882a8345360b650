package latency

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "latency"

// Room is its row of the table.
var Room = &room.Room{
	Name:     Name,
	Summary:  "time of one operation at a time, or at a fixed rate",
	Work:     work,
	Note:     "--rate is for latency alone",
	Standard: true,
	Means:    [][]string{{"rate", "rate-sweep"}},
	Ops:      []string{"send", "write", "read", "call"},
	Sizes:    []int{64, 4 << 10},
	Flags:    func() room.Flags { return flags{} },
}

type flags struct{ room.None }

// Points are all operations, sizes, rates, numbers of queue pairs and application work.
func (flags) Points(_ *engine.Plan, c *room.Common) ([]engine.Point, error) {
	return c.Product(c.Worked(Room.Ops), Room.Sizes, func(op string, size int) (points []engine.Point) {
		for _, rate := range c.Rates {
			for _, q := range c.QPs {
				for _, work := range c.AppWork {
					points = append(points, rpc.CallPoint(engine.Point{Workload: Name, Op: op, Size: size, Rate: rate, QPs: q, AppWork: work}, false))
				}
			}
		}
		return points
	}), nil
}
