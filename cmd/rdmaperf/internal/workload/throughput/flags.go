package throughput

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
)

// Name is the workload's.
const Name = "throughput"

// Workload implements workload.Workload.
type Workload struct {
	bothWays bool
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Summary: "bandwidth and message rate with many operations outstanding",
		Examples: "rdmaperf run --transport iwarp --workload throughput --op write -s 1M -t 16 -D 3s\n" +
			"rdmaperf run --transport iwarp --workload throughput --op write -s 64K -b\n" +
			"rdmaperf run --transport iwarp --workload throughput --op write -s 4K --qp-sweep 1,2,4,8,16",
		Results:  results,
		Standard: true,
		Slices:   true,
		Means:    []string{"bidirectional"},
		Ops:      []string{"write", "call"},
		Sizes:    []int{64, 64 << 10, 1 << 20},
	}
}

func (f *Workload) Flags(set *pflag.FlagSet) {
	set.BoolVarP(&f.bothWays, "bidirectional", "b", false,
		"throughput in both directions at once")
}

// Points are all operations, sizes and numbers of queue pairs.
func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	m := f.Meta()
	return c.Product(c.Worked(m.Ops), m.Sizes, func(op string, size int) (points []engine.Point) {
		for _, q := range c.QPs {
			for _, work := range c.AppWork {
				points = append(points, Point(c.Plan, engine.Point{Op: op, Size: size, QPs: q, AppWork: work,
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
