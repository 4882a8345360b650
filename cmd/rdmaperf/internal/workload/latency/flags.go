package latency

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Name is the workload's.
const Name = "latency"

// results declares that a rate of one operation at a time says what its latency says.
var results = &reports.Workload{Name: Name, Title: "Latency", Timed: true, Shown: []string{"p50", "p99", "mean"}}

// Workload implements workload.Workload.
type Workload struct{}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Summary: "latency of one operation at a time, or at a fixed rate",
		Examples: "rdmaperf run --transport tcp,iwarp --workload latency --op send -s 64 -D 3s\n" +
			"rdmaperf run --transport iwarp --workload latency --op write -s 64 --rate-sweep 10000:50000:10000 " +
			"--arrivals poisson\n" +
			"rdmaperf run --workload latency -s 64 --neighbours 0,1,2,4",
		Results:  results,
		Note:     "--rate means latency alone",
		Standard: true,
		Slices:   true,
		Means:    []string{"rate", "rate-sweep"},
		Ops:      []string{"send", "write", "read", "call"},
		Sizes:    []int{64, 4 << 10},
	}
}

// Flags adds none: those of the load are enough.
func (*Workload) Flags(*pflag.FlagSet) {}

// Points are all operations, sizes, rates, numbers of queue pairs and application work.
func (w *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	m := w.Meta()
	return c.Product(c.Worked(m.Ops), m.Sizes, func(op string, size int) (points []engine.Point) {
		for _, rate := range c.Rates {
			for _, q := range c.QPs {
				for _, work := range c.AppWork {
					points = append(points, Point(engine.Point{Op: op, Size: size, Rate: rate, QPs: q, AppWork: work},
						c.Plan.Polling))
				}
			}
		}
		return points
	}), nil
}

// Point is pt as a point of this workload, with a mode of polling.
func Point(pt engine.Point, polling string) engine.Point {
	pt.Workload, pt.Needs = Name, drive.PingPongNeeds(pt.Op, polling)
	return rpc.CallPoint(pt, false)
}
