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

// The loops of both sides allocate nothing per operation: what a phase allocates
// does not grow with its length.
func TestLoopsAllocateNothing(t *testing.T) {
	const operations = 20000
	for _, w := range []string{latency.Name, throughput.Name} {
		for k := transports.KindSend; k < transports.KindCall; k++ {
			t.Run(fmt.Sprintf("%s/%s", w, k), func(t *testing.T) {
				plan := enginetest.QuickPlan(engine.Point{Workload: w, Op: k.String(), Size: 8})
				client, server := enginetest.Pair(t, enginetest.MemEnds, plan, ends[w].shape, ends[w].sides)
				enginetest.Once(t, client, server, 1, engine.Limits{Ops: 100}) // grows what grows once
				release := engine.HoldCollector()
				defer release()
				out := enginetest.Once(t, client, server, 2, engine.Limits{Ops: operations})
				if out.Ops != operations {
					t.Fatalf("%d operations, want %d", out.Ops, operations)
				}
				if out.Usage.Allocations > enginetest.PhaseAllocations {
					t.Errorf("%d allocations in %d operations, want none of the loops", out.Usage.Allocations,
						operations)
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
