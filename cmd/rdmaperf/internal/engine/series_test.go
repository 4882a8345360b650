package engine

import (
	"math"
	"sync"
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

// A finished interval is seen while the window goes on, once and whole.
func TestLiveSeesFinishedIntervals(t *testing.T) {
	l := NewLive(10)
	a, b := l.Ring(), l.Ring()
	a.Start(100)
	b.Start(100)
	l.Begin([]*Series{a, b})
	a.Sample(105, 7)
	a.Sample(106, 9)
	b.Sample(101, 100)
	if p, _, ok := l.Next(); ok {
		t.Fatalf("an unfinished interval is seen: %+v", p)
	}
	a.Sample(112, 5)
	if _, _, ok := l.Next(); ok {
		t.Fatal("one of two workers has not finished the interval")
	}
	b.Sample(111, 5)
	p, every, ok := l.Next()
	if !ok || every != 10 || p.OffsetNs != 0 || p.Operations != 3 || p.P50 != 9 || p.Max != 100 {
		t.Fatalf("%+v %v %v, want 3 operations with the median 9", p, every, ok)
	}
	if _, _, ok := l.Next(); ok {
		t.Fatal("the same interval is seen twice")
	}
}

// A forgetting series stays small however long the window is, and a late reader gets what is still there.
func TestLiveForgets(t *testing.T) {
	l := NewLive(10)
	s := l.Ring()
	s.Start(0)
	l.Begin([]*Series{s})
	for i := range int64(1000) {
		s.count(i*10, i)
	}
	if len(s.slots) > 2*liveSlots {
		t.Errorf("%d slots", len(s.slots))
	}
	p, _, ok := l.Next()
	if !ok || p.Operations != p.OffsetNs/10 || p.OffsetNs < 9000 {
		t.Errorf("%+v, %v: want one of the last intervals, with its own operations", p, ok)
	}
}

// The race detector watches the one store that both sides share.
func TestLiveIsReadBesideTheWorker(t *testing.T) {
	l := NewLive(1000)
	s := l.Ring()
	s.Start(0)
	l.Begin([]*Series{s})
	seen := make(chan int64)
	var done sync.WaitGroup
	done.Go(func() {
		deadline := time.Now().Add(10 * time.Second)
		var ops int64
		for i := 0; i < liveSlots-2 && time.Now().Before(deadline); {
			if p, _, ok := l.Next(); ok {
				ops += p.Operations
				i++
			}
		}
		seen <- ops
	})
	for i := range int64(liveSlots - 1) {
		for k := range int64(10) {
			s.Sample(i*1000+k, k)
		}
	}
	if got := <-seen; got != (liveSlots-2)*10 {
		t.Errorf("%d operations seen, want %d", got, (liveSlots-2)*10)
	}
	done.Wait()
}
