package engine_test

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
)

// ends are both sides of the workloads of one operation.
var ends = map[string]struct {
	shape func(*engine.Setup) (*engine.Shape, error)
	sides [2]engine.NewSide
}{
	latency.Name:    {drive.PingPongShape, [2]engine.NewSide{drive.NewPingPong, drive.NewPingPong}},
	throughput.Name: {drive.ThroughputShape, [2]engine.NewSide{drive.NewFlow, drive.NewFlow}},
}

// The loops of both sides allocate nothing per operation, closed and open, one way and both: what a phase allocates
// does not grow with its length.
func TestLoopsAllocateNothing(t *testing.T) {
	const operations = 20000
	points := []engine.Point{}
	for k := transports.KindSend; k < transports.KindCall; k++ {
		for _, w := range []string{latency.Name, throughput.Name} {
			points = append(points, engine.Point{Workload: w, Op: k.String(), Size: 8})
		}
	}
	for _, op := range []string{"send", "write", "read"} {
		points = append(points, engine.Point{Workload: throughput.Name, Op: op, Size: 8, Bidirectional: true},
			engine.Point{Workload: latency.Name, Op: op, Size: 64, Rate: 1e6})
	}
	for _, pt := range points {
		for _, arrivals := range []string{engine.ArrivalsConstant, engine.ArrivalsPoisson} {
			if pt.Rate == 0 && arrivals == engine.ArrivalsPoisson {
				continue
			}
			t.Run(pt.String()+", "+arrivals, func(t *testing.T) {
				plan := enginetest.QuickPlan(pt)
				plan.Arrivals = arrivals
				end := ends[pt.Workload]
				client, server := enginetest.Pair(t, enginetest.MemEnds, plan, end.shape, end.sides)
				enginetest.Once(t, client, server, 1, engine.Limits{Ops: 100}) // grows what grows once
				release := engine.HoldCollector()
				defer release()
				out := enginetest.Once(t, client, server, 2, engine.Limits{Ops: operations})
				if out.Ops != operations || pt.Rate > 0 && out.Service.Count() != operations {
					t.Fatalf("%d operations, want %d", out.Ops, operations)
				}
				if out.Usage.Allocations > enginetest.PhaseAllocations {
					t.Errorf("%d allocations, want none of the loops", out.Usage.Allocations)
				}
			})
		}
	}
}

// The engine's own cost per operation, on a transport that costs little itself.
func BenchmarkLoop(b *testing.B) {
	for _, pt := range []engine.Point{{Workload: throughput.Name, Op: "write", Size: 64},
		{Workload: throughput.Name, Op: "send", Size: 64}, {Workload: latency.Name, Op: "send", Size: 64},
		{Workload: latency.Name, Op: "write", Size: 64}} {
		for _, e := range []string{"mem", "tcp", "iwarp"} {
			b.Run(fmt.Sprintf("%s/%s/%s", pt.Workload, pt.Op, e), func(b *testing.B) {
				plan := enginetest.QuickPlan(pt)
				plan.Depth, plan.RecvDepth = 128, 512
				client, server := enginetest.Pair(b, enginetest.StacksUnderTest[e], plan, ends[pt.Workload].shape,
					ends[pt.Workload].sides)
				enginetest.Once(b, client, server, 1, engine.Limits{Ops: 1000})
				b.ResetTimer()
				out := enginetest.Once(b, client, server, 2, engine.Limits{Ops: int64(b.N)})
				b.ReportMetric(float64(out.Window.Nanoseconds())/float64(b.N), "ns/op")
			})
		}
	}
}

// One clock reading, as the loops take it.
func BenchmarkClock(b *testing.B) {
	var last int64
	for b.Loop() {
		last = engine.Now()
	}
	_ = last
}
