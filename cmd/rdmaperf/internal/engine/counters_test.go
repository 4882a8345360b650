package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// reader counts how often it was read, and when.
type reader struct {
	device string
	step   int64
	times  []int64
}

func (r *reader) read() []reports.DeviceCounters {
	r.times = append(r.times, engine.Now())
	return []reports.DeviceCounters{{Device: r.device, Port: 1,
		Counters: map[string]int64{"moves": int64(len(r.times)) * r.step, "stays": 7}}}
}

// Both sides read before and after the measured phase, and only then: not in it,
// and not around warm-up, the phases alone or the round that verifies.
func TestCountersAroundTheMeasuredPhase(t *testing.T) {
	client, server := enginetest.MemEnds(t)
	near, far := &reader{device: "near0", step: 10}, &reader{device: "far0", step: 1000}
	named := make(chan string, 1)
	s := &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server),
		Counters: func(tr transports.Stack) func() []reports.DeviceCounters {
			named <- tr.Name()
			return far.read
		}}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: throughput.Name, Op: "write", Size: 64},
		engine.Point{Workload: hol.Name, Op: "write", Size: 4096, Variant: hol.SameQP})
	plan.WarmupIterations = 10
	c, err := engine.Connect(t.Context(), enginetest.ServeOn(t, s), client, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Counters = near.read
	for i, pt := range plan.Points {
		near.times, far.times = nil, nil
		r, err := enginetest.First(c.Run(t.Context(), i))
		if err != nil {
			t.Fatal(err)
		}
		changes := func(device string, by int64) []reports.DeviceCounters {
			return []reports.DeviceCounters{{Device: device, Port: 1,
				Counters: map[string]int64{"moves": by, "stays": 0}}}
		}
		if diff := cmp.Diff(&reports.Counters{Client: changes("near0", 10), Server: changes("far0", 1000)},
			r.Counters); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pt, diff)
		}
		if len(near.times) != 2 || len(far.times) != 2 {
			t.Fatalf("%s: read %d and %d times, want twice on each side", pt, len(near.times), len(far.times))
		}
		for side, times := range map[string][]int64{"client": near.times, "server": far.times} {
			if between := times[1] - times[0]; between < r.DurationNs {
				t.Errorf("%s: the %s read twice in %v, the window had %v", pt, side, time.Duration(between),
					time.Duration(r.DurationNs))
			}
		}
	}
	if stack := <-named; stack != server.Name() {
		t.Errorf("the server asked for the counters of %q, want %q", stack, server.Name())
	}
}

func TestNoCountersWithoutADevice(t *testing.T) {
	results, err := enginetest.RunPoints(t, enginetest.MemEnds,
		enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64}))
	if err != nil || results[0].Counters != nil {
		t.Errorf("counters %+v, error %v, want neither", results[0].Counters, err)
	}
}
