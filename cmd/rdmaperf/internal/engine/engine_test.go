package engine_test

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Every workload and operation that a stack declares gives the exact number of operations, verified, on two QPs.
func TestEveryOperationCountsExactly(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		client, _ := e(t)
		caps := client.Caps()
		for _, polling := range []string{engine.PollingBusy, engine.PollingAdaptive, engine.PollingEvent} {
			t.Run(name+"/"+polling, func(t *testing.T) {
				plan := enginetest.QuickPlan()
				plan.Polling, plan.QPs, plan.Iterations, plan.WarmupIterations = polling, 2, 40, 10
				for k := transports.KindSend; k < transports.KindCall; k++ {
					if !caps.Kinds.Has(k) {
						continue
					}
					sizes := []int{1, 64, 5000, 64 << 10}
					if polling != engine.PollingBusy {
						sizes = []int{64}
					}
					if engine.IsAtomic(k) || k == transports.KindSendImm && caps.ImmAlone {
						sizes = []int{8}
					}
					for _, size := range sizes {
						plan.Points = append(plan.Points, engine.Point{Workload: latency.Name, Op: k.String(),
							Size: size}, engine.Point{Workload: throughput.Name, Op: k.String(), Size: size})
					}
				}
				results, err := enginetest.RunPoints(t, e, plan)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					if r.Operations != 80 || !r.Verified || r.Errors != 0 {
						t.Errorf("%s: %d operations, verified %v, errors %d, want 80, true, 0", plan.Points[i],
							r.Operations, r.Verified, r.Errors)
					}
					if r.Workload == latency.Name && r.Latency.Count != 80 {
						t.Errorf("%s: %d samples, want 80", plan.Points[i], r.Latency.Count)
					}
				}
			})
		}
	}
}

// A message above 16 MiB takes another window layout.
func TestLargeMessages(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: engine.LargeMessage + 1},
		engine.Point{Workload: throughput.Name, Op: "write", Size: engine.LargeMessage + 1})
	plan.Iterations = 5
	results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Operations != 5 || !r.Verified {
			t.Errorf("%s: %d operations, verified %v, want 5, true", r.Workload, r.Operations, r.Verified)
		}
	}
}

// Parameters must let a reader repeat the run.
func TestParametersNameBothSides(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "write", Size: 64},
		engine.Point{Workload: throughput.Name, Op: "read", Size: 64},
		engine.Point{Workload: throughput.Name, Op: "write", Size: 64},
		engine.Point{Workload: throughput.Name, Op: "send", Size: 64})
	results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"arrival", "target", "seed", "recv_depth", "inline_bytes", "completion_every",
		"iterations", "client", "server", "gc"} {
		for _, r := range results {
			if _, ok := r.Parameters[key]; !ok {
				t.Errorf("%s: no parameter %q", r.Workload, key)
			}
		}
	}
	for i, want := range []string{engine.ArrivalMemory + "/" + engine.TargetActive, engine.ArrivalCompletion + "/" +
		engine.TargetPassive,
		engine.ArrivalMessage + "/" + engine.TargetPassive, engine.ArrivalMessage + "/" + engine.TargetActive} {
		if got := fmt.Sprintf("%v/%v", results[i].Parameters["arrival"], results[i].Parameters["target"]); got != want {
			t.Errorf("point %d: arrival/target = %s, want %s", i, got, want)
		}
	}
	if r := results[0]; r.RoundTrip != "half" || r.LatencyCorrected == nil || r.CPU == nil || r.GC == nil {
		t.Errorf("latency result lacks something: %+v", r)
	}
}

func TestMain(m *testing.M) {
	enginetest.Main(m, catalogue.Table())
}

// ends are both sides of the workloads of one operation.
var ends = map[string]struct {
	shape func(*engine.Setup) (*engine.Shape, error)
	sides [2]engine.NewSide
}{
	latency.Name:    {drive.PingPongShape, [2]engine.NewSide{drive.NewPingPong, drive.NewPingPong}},
	throughput.Name: {drive.ThroughputShape, [2]engine.NewSide{drive.NewFlow, drive.NewFlow}},
}

// What a phase of either loop allocates does not grow with its length.
func TestLoopsAllocateNothing(t *testing.T) {
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
				enginetest.AllocatesNothing(t, client, server, 20_000)
			})
		}
	}
}
