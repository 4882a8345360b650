// Package latency is the workload of single operations: a ping-pong, or an open loop at a given rate.
package latency

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

const Name = "latency"

// results declares that a rate of one operation at a time says what its latency says.
var results = &reports.Workload{Name: Name, Title: "Latency", Timed: true, Shown: []string{"p50", "p99", "mean"}}

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

func (*Workload) Flags(*pflag.FlagSet) {}

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

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return rpc.Measure(ctx, r, 1, false, nil)
	}
	sh, err := drive.PingPongShape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewPingPong)
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		if err = m.Warmed(ctx); err == nil {
			err = m.Measure(ctx, reports.SamplesLatency)
		}
		res := m.Result()
		res.RoundTrip = drive.HalfOrFull(sh)
		drive.PingPongParameters(m, res.Parameters)
		if m.Out != nil {
			drive.Latencies(m, &res, m.Out)
		}
		r.Add(res)
	}
	return m.Close(ctx, err)
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, 1)
	}
	sh, err := drive.PingPongShape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, drive.NewPingPong)
}
