package throughput

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	throughputresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput/results"
)

// Name is the workload's.
const Name = "throughput"

// Room is its row of the table.
var Room = &room.Room{
	Name:     Name,
	Summary:  "rate and bandwidth with many outstanding",
	Runner:   new(flags),
	Results:  throughputresults.Results,
	Standard: true,
	Means:    [][]string{{"bidirectional"}},
	Ops:      []string{"write", "call"},
	Sizes:    []int{64, 64 << 10, 1 << 20},
	Flags:    func() room.Flags { return new(flags) },
}

type flags struct {
	room.None
	bothWays bool
}

func (f *flags) Register(set *pflag.FlagSet) {
	set.BoolVarP(&f.bothWays, "bidirectional", "b", false,
		"throughput with both sides sending at once: each direction and the sum")
}

// Points are all operations, sizes and numbers of queue pairs.
func (f *flags) Points(p *engine.Plan, c *room.Common) ([]engine.Point, error) {
	return c.Product(c.Worked(Room.Ops), Room.Sizes, func(op string, size int) (points []engine.Point) {
		for _, q := range c.QPs {
			for _, work := range c.AppWork {
				points = append(points, Point(p, engine.Point{Op: op, Size: size, QPs: q, AppWork: work,
					Bidirectional: f.bothWays}))
			}
		}
		return points
	}), nil
}

// Point is pt as a point of this workload.
func Point(p *engine.Plan, pt engine.Point) engine.Point {
	pt.Workload, pt.Needs = Name, drive.StreamNeeds(p, pt)
	return rpc.CallPoint(pt, true)
}
