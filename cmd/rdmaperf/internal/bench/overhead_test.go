package bench

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// The loop runs on the null session, and its figure stands in latency results
// only.
func TestLoopOverheadStandsInLatencyResults(t *testing.T) {
	if ns := measureOverhead(limits{ops: 1000}); ns <= 0 {
		t.Errorf("overhead %v ns, want some", ns)
	}
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64}, Point{Workload: WorkloadLatency, Op: "read", Size: 64, Rate: 1e5},
		Point{Workload: WorkloadThroughput, Op: "write", Size: 64})
	results, err := runPoints(t, memEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	first := results[0].Parameters["loop_overhead_ns"]
	if v, ok := first.(float64); !ok || v <= 0 {
		t.Errorf("loop_overhead_ns %v, want a number above 0", first)
	}
	if again := results[1].Parameters["loop_overhead_ns"]; again != first {
		t.Errorf("it was measured again: %v, then %v", first, again)
	}
	if v, ok := results[2].Parameters["loop_overhead_ns"]; ok {
		t.Errorf("throughput has an overhead of %v", v)
	}
}

// What one operation costs for being measured: its latency
// and its service time recorded, and the next start computed. The budget is 30 ns.
func BenchmarkRecorderAndPacer(b *testing.B) {
	for _, arrivals := range []string{ArrivalsConstant, ArrivalsPoisson} {
		b.Run(arrivals, func(b *testing.B) {
			rec, service := reports.NewRecorder(), reports.NewRecorder()
			p := NewPacer(1000, arrivals == ArrivalsPoisson, 1)
			p.Start(0)
			b.ReportAllocs()
			i := int64(0)
			for b.Loop() {
				_ = p.Due()
				p.Next()
				rec.Record(5000 + i&1023)
				service.Record(2000 + i&1023)
				i++
			}
		})
	}
}

// The loop on the null session: clock, post, poll, record and verify.
func BenchmarkNullLoop(b *testing.B) {
	b.ReportMetric(measureOverhead(limits{ops: int64(b.N)}), "ns/sample")
}
