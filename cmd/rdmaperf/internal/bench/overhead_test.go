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
// and its service time recorded, and the next start computed; with raw samples kept,
// too. The budget is 30 ns.
func BenchmarkRecorderAndPacer(b *testing.B) {
	for _, arrivals := range []string{ArrivalsConstant, ArrivalsPoisson} {
		for _, raw := range []bool{false, true} {
			name := arrivals
			if raw {
				name += "-raw"
			}
			b.Run(name, func(b *testing.B) {
				w := &worker{rec: reports.NewRecorder(), service: reports.NewRecorder(), pace: NewPacer(1000, arrivals == ArrivalsPoisson, 1)}
				if raw {
					(&rawStore{limit: 1_000_000}).prepare([]*worker{w})
					w.watched = true
				}
				w.pace.Start(0)
				b.ReportAllocs()
				i := int64(0)
				for b.Loop() {
					due := w.pace.Due()
					w.pace.Next()
					w.record(due, 5000+i&1023, 2000+i&1023)
					w.service.Record(2000 + i&1023)
					if i++; raw && w.raw.n == len(w.raw.samples) {
						w.raw.n = 0 // a full buffer would cost less
					}
				}
			})
		}
	}
}

// The loop on the null session: clock, post, poll, record and verify.
func BenchmarkNullLoop(b *testing.B) {
	b.ReportMetric(measureOverhead(limits{ops: int64(b.N)}), "ns/sample")
}
