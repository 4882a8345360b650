//go:build cgo && linux

package verbs

import (
	"slices"
	"testing"
)

// A volley on the null provider ends at once, again and again, and allocates nothing.
func TestVolleysOnTheNullProvider(t *testing.T) {
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
	if n := testing.AllocsPerRun(100, func() { q.step() }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	if volleyOverhead() <= 0 {
		t.Error("no overhead was measured")
	}
}

// What a volley adds to a round trip (sample-ns, the median), and what the whole step
// with the way into C and out takes, most of it between samples (ns/op).
func BenchmarkNullVolley(b *testing.B) {
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
