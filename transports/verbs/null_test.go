//go:build cgo && linux

package verbs

import (
	"slices"
	"testing"
	"time"
)

// A PingPong on the null provider ends at once, again and again.
func TestPingPongOnTheNullProvider(t *testing.T) {
	q, end := nullQP()
	if q == nil {
		t.Fatal("no null provider")
	}
	defer end()
	for i := range 100 { // more often than the queue is deep
		if ns := q.step(); ns < 0 {
			t.Fatalf("step %d did not end", i)
		}
	}
	if pingPongOverhead() <= 0 {
		t.Error("no overhead was measured")
	}
}

func TestPingPongAllocatesNothing(t *testing.T) {
	q, end := nullQP()
	if q == nil {
		t.Fatal("no null provider")
	}
	defer end()
	if n := testing.AllocsPerRun(100, func() { q.step() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// the clock of PingPong runs as fast as Go's, and does not go backwards. Each of its
// readings lies between two of Go's, so that a pause cannot fail the test.
func TestTheClockOfPingPongKeepsTime(t *testing.T) {
	pingPongClock() // settles
	base := time.Now()
	from, _ := pingPongClock()
	shortest := time.Now()
	time.Sleep(100 * time.Millisecond)
	inner := time.Since(shortest)
	to, counter := pingPongClock()
	outer := time.Since(base)
	// The slack of 1 in 1000 is ten times what clock.c takes for its worst rate.
	took, slack := time.Duration(to-from), outer/1000
	if took < inner-slack || took > outer+slack {
		t.Errorf("PingPong's clock (counter: %v) says %v, Go's between %v and %v", counter, took, inner, outer)
	}
	for last, i := int64(0), 0; i < 1000; i++ {
		now, _ := pingPongClock()
		if now < last {
			t.Fatalf("%d ns after %d ns", now, last)
		}
		last = now
	}
}

// What a PingPong adds to a round trip (sample-ns, the median), and what the whole step
// with the way into C and out takes, most of it between samples (ns/op).
func BenchmarkNullPingPong(b *testing.B) {
	q, end := nullQP()
	if q == nil {
		b.Fatal("no null provider")
	}
	defer end()
	took := make([]int64, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		if ns := q.step(); len(took) < cap(took) {
			took = append(took, ns)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "sample-ns")
}
