// Package throughput is the workload of streams: each queue pair's depth of operations outstanding, one way or both.
package throughput

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

const Name = "throughput"

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
	set.BoolVarP(&f.bothWays, "bidirectional", "b", false, "throughput in both directions at once")
}

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

// DefaultCallDepth is of calls, each a goroutine: fewer large ones fill a carrier's ring.
const DefaultCallDepth = 16

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return rpc.Measure(ctx, r, DefaultCallDepth, true, nil)
	}
	sh, err := drive.ThroughputShape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewFlow)
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		if err = m.Warmed(ctx); err == nil {
			err = m.Measure(ctx, reports.SamplesLatency)
		}
		if err == nil {
			err = m.Prove(ctx)
		}
		res := m.Result()
		drive.ThroughputParameters(m, res.Parameters)
		if m.Out != nil {
			drive.Throughput(m, &res, m.Out)
		}
		r.Add(res)
	}
	return m.Close(ctx, err)
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, DefaultCallDepth)
	}
	sh, err := drive.ThroughputShape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, drive.NewFlow)
}

// Of is the detail of a bidirectional stream, nil for any other.
func Of(r *reports.Result) *drive.Bidirectional { return reports.DetailOf[drive.Bidirectional](r) }

var results = &reports.Workload{
	Name: Name, Title: "Throughput", Rated: true,
	Dims:    []reports.DimDef{{Name: "directions", Help: "both, where each side sends while the other does"}},
	Figures: slices.Concat(figuresOf("client"), figuresOf("server")),
	Shown: []string{"bw", "rate", "p50", "p99", "from_client.bw", "from_server.bw", "from_client.rate",
		"from_server.rate"},
	Detail:   func() reports.Detail { return new(drive.Bidirectional) },
	Describe: describe,
}

func figuresOf(side string) []reports.FigureDef {
	return []reports.FigureDef{
		{Name: "from_" + side + ".bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second from the " + side + ", by its own clock"},
		{Name: "from_" + side + ".rate", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "operations a second of the " + side},
		{Name: "from_" + side + ".operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "completed in the " + side + "'s window"},
		{Name: "from_" + side + ".duration", Quantity: reports.QuantityTime, Better: reports.Neither,
			Help: "of the " + side + "'s window"},
	}
}

func describe(w *reports.Workload, r *reports.Result) {
	b := Of(r)
	if b == nil {
		return
	}
	r.Dims = reports.DimsOf(w.Dims, "both")
	var values []float64
	for _, d := range []drive.Direction{b.FromClient, b.FromServer} {
		values = append(values, d.BytesPerSecond, d.OperationsPerSecond, float64(d.Operations), float64(d.DurationNs))
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}
