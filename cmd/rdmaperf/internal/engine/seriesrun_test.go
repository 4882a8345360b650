package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
)

// All workloads fill their series, and no operation is lost or counted twice.
func TestSeriesAddsUp(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: latency.Name, Op: "write", Size: 64, Rate: 5000},
		engine.Point{Workload: throughput.Name, Op: "send", Size: 64}, hol.NewPoint("write", 4096, hol.TwoQP,
			hol.Options{ProbeInterval: 100 * time.Microsecond}))
	plan.Iterations, plan.Duration, plan.Interval, plan.WarmupIterations, plan.QPs, plan.Threads = 0,
		50*time.Millisecond, 10*time.Millisecond, 33, 2, 2
	results, err := enginetest.RunPoints(t, enginetest.TcpEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Series == nil || len(r.Series.Points) != 5 || r.Series.IntervalNs != int64(plan.Interval) {
			t.Fatalf("%s: series %+v, want 5 points", plan.Points[i], r.Series)
		}
		want, max := r.Operations, 0.0
		if r.Latency != nil {
			if max = r.Latency.Max; r.Latency.IsBound("max") {
				max = -1 // it did not end
			}
		}
		if hol.Of(&r) != nil {
			// What did not end is in no interval.
			l := &hol.Of(&r).ProbeLoaded
			if want, max = l.Count-l.Unfinished, l.Max; l.IsBound("max") {
				max = -1
			}
		}
		var sum int64
		highest := 0.0
		for _, p := range r.Series.Points {
			sum += p.Operations
			highest = math.Max(highest, p.Max)
			if p.P50 > p.P99 || p.P99 > p.Max {
				t.Errorf("%s: point %+v is out of order", plan.Points[i], p)
			}
		}
		if sum != want || max >= 0 && highest != max {
			t.Errorf("%s: the series has %d operations and a maximum of %v, want %d and %v", plan.Points[i], sum,
				highest, want, max)
		}
	}
}
