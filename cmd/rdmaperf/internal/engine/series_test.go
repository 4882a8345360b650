package engine

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
			t.Errorf("%d ns: bucket %d is for %v", ns, i, mid)
		}
	}
	for _, ns := range []int64{-5, math.MaxInt64} {
		if i := seriesBucket(ns); i < 0 || i >= seriesBuckets {
			t.Errorf("%d ns is in bucket %d", ns, i)
		}
	}
}

// Samples fall into the interval in which they ended, later ones into the last; two workers add up.
func TestSeriesTakesSamplesByTheirEnd(t *testing.T) {
	a, b := NewSeries(10, 35), NewSeries(10, 35)
	a.Start(100)
	b.Start(100)
	for i := range int64(100) {
		a.Sample(100+i/10, i) // all before 110
	}
	a.Sample(129, 7)
	b.Sample(130, 20)
	b.count(500, 4) // behind the window
	a.Merge(b)
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
		if p.OffsetNs != int64(i)*10 || p.Operations != want.ops || p.P50 != want.p50 || math.Abs(p.P99-want.p99) > 1 ||
			p.Max != want.max {
			t.Errorf("point %d: %+v, want %+v", i, p, want)
		}
	}
}

func TestSeriesAllocatesNothing(t *testing.T) {
	s := NewSeries(time.Millisecond, time.Second)
	s.Start(0)
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() { at += 12345; s.Sample(at, at); s.count(at, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
