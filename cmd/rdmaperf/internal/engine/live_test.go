package engine

import (
	"sync"
	"testing"
	"time"
)

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
