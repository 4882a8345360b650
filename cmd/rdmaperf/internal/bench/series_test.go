package bench

import (
	"math"
	"testing"
	"time"
)

// Buckets rise, and their middle is within 1.6 % of every value in them.
func TestSeriesBuckets(t *testing.T) {
	before := -1
	for _, ns := range []int64{0, 1, 63, 64, 65, 127, 128, 1000, 1023, 1024, 5_000_000, 59_999_999_999, seriesMaxNs} {
		i := seriesBucket(ns)
		if i < before || i >= seriesBuckets {
			t.Errorf("%d ns is in bucket %d, after %d", ns, i, before)
		}
		before = i
		if mid := bucketNs(i); math.Abs(mid-float64(ns)) > 0.016*float64(ns) {
			t.Errorf("%d ns: bucket %d stands for %v", ns, i, mid)
		}
	}
	for _, ns := range []int64{-5, math.MaxInt64} {
		if i := seriesBucket(ns); i < 0 || i >= seriesBuckets {
			t.Errorf("%d ns is in bucket %d", ns, i)
		}
	}
}

// Samples fall into the interval in which they ended, later ones into the last;
// two workers add up.
func TestSeriesTakesSamplesByTheirEnd(t *testing.T) {
	a, b := newSeries(10, 35), newSeries(10, 35)
	a.start(100)
	b.start(100)
	for i := range int64(100) {
		a.sample(100+i/10, i) // all before 110
	}
	a.sample(129, 7)
	b.sample(130, 20)
	b.count(500, 4) // behind the window
	a.merge(b)
	r := a.report()
	if r.IntervalNs != 10 || len(r.Points) != 4 {
		t.Fatalf("series %+v, want 4 points", r)
	}
	for i, want := range []struct {
		ops           int64
		p50, p99, max float64
	}{{100, 49, 98, 99}, {0, 0, 0, 0}, {1, 7, 7, 7}, {5, 20, 20, 20}} {
		p := r.Points[i]
		// 98 shares its bucket with 99.
		if p.OffsetNs != int64(i)*10 || p.Operations != want.ops || p.P50 != want.p50 || math.Abs(p.P99-want.p99) > 1 || p.Max != want.max {
			t.Errorf("point %d: %+v, want %+v", i, p, want)
		}
	}
}

// All workloads fill their series, and no operation is lost or counted twice.
func TestSeriesAddsUp(t *testing.T) {
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64}, Point{Workload: WorkloadLatency, Op: "write", Size: 64, Rate: 5000},
		Point{Workload: WorkloadThroughput, Op: "send", Size: 64}, Point{Workload: WorkloadHOL, Op: "write", Size: 4096, Arm: ArmTwoQP})
	plan.Iterations, plan.Duration, plan.Interval, plan.WarmupIterations, plan.QPs, plan.Threads = 0, 50*time.Millisecond, 10*time.Millisecond, 33, 2, 2
	plan.ProbeInterval = 100 * time.Microsecond
	results, err := runPoints(t, tcpEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Series == nil || len(r.Series.Points) != 5 || r.Series.IntervalNs != int64(plan.Interval) {
			t.Fatalf("%s: series %+v, want 5 points", plan.Points[i], r.Series)
		}
		want, max := r.Operations, 0.0
		if r.Latency != nil {
			max = r.Latency.Max
		}
		if r.HOL != nil {
			want, max = r.HOL.ProbeLoaded.Count, r.HOL.ProbeLoaded.Max
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
		if sum != want || highest != max {
			t.Errorf("%s: the series has %d operations and a maximum of %v, want %d and %v", plan.Points[i], sum, highest, want, max)
		}
	}
}

func TestSeriesAllocatesNothing(t *testing.T) {
	s := newSeries(time.Millisecond, time.Second)
	s.start(0)
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() { at += 12345; s.sample(at, at); s.count(at, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
