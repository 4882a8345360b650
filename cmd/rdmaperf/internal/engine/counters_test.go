package engine_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
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

// Both sides read before and after the measured phase, and at no other time.
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

// A stream's slots hold each operation of its window once, and none of the warm-up or of the round that verifies.
func TestStreamsHaveAPeak(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "write", Size: 64})
	plan.Iterations, plan.Duration, plan.QPs, plan.Threads = 0, 100*time.Millisecond, 2, 2
	var m *engine.Measurement
	plan.Workloads = engine.Table{
		throughput.Name: {Runner: enginetest.Alone(func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
			sh, err := drive.ThroughputShape(&r.Setup)
			if err != nil {
				return nil, err
			}
			if m, err = r.Connect(ctx, sh, drive.NewFlow); err != nil {
				return nil, err
			}
			if err = m.Measure(ctx, reports.SamplesLatency); err == nil {
				err = m.Prove(ctx)
			}
			err = m.Close(ctx, err)
			res := m.Result()
			drive.Throughput(m, &res, m.Out) // folds the slots
			return []reports.Result{res}, err
		})}}
	results, err := enginetest.RunPoints(t, enginetest.TcpEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	res := results[0]
	var sum, most int64
	for i, n := range m.Out.Peak.Slots {
		if sum += n; i < m.Out.Peak.At {
			most = max(most, n)
		}
	}
	if !res.Verified || res.Operations == 0 || sum != res.Operations {
		t.Errorf("slots of %d operations, want the window's %d; verified %v", sum, res.Operations, res.Verified)
	}
	tp := res.Throughput
	want := float64(most) * 64 / time.Duration(tp.PeakOverNs).Seconds()
	if d := tp.PeakBytesPerSecond - max(want, tp.BytesPerSecond); tp.PeakOverNs < int64(time.Millisecond) || d > 1 ||
		d < -1 {
		t.Errorf("throughput %+v, want a peak of %v, that of the fullest slot", tp, want)
	}
}
