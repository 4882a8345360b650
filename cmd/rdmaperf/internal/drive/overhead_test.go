package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The loop runs on the null session, and its figure is in latency results only.
func TestLoopOverheadStandsInLatencyResults(t *testing.T) {
	if ns := drive.MeasureOverhead(engine.Limits{Ops: 1000}); ns <= 0 {
		t.Errorf("overhead %v ns, want some", ns)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: latency.Name, Op: "read", Size: 64, Rate: 1e5},
		engine.Point{Workload: throughput.Name, Op: "write", Size: 64})
	results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
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

// What one operation costs for being measured: its latency and its service time recorded, and the next start
// computed; with raw samples kept, too. The budget is 30 ns.
func BenchmarkRecorderAndPacer(b *testing.B) {
	for _, arrivals := range []string{engine.ArrivalsConstant, engine.ArrivalsPoisson} {
		for _, raw := range []bool{false, true} {
			name := arrivals
			if raw {
				name += "-raw"
			}
			b.Run(name, func(b *testing.B) {
				w := &engine.Worker{Rec: reports.NewRecorder(), Service: reports.NewRecorder(),
					Pace: engine.NewPacer(1000, arrivals == engine.ArrivalsPoisson, 1)}
				if raw {
					w.Raw = (&engine.RawStore{Limit: 1_000_000}).Share(1)[0]
					w.Watched = true
				}
				w.Pace.Start(0)
				b.ReportAllocs()
				i := int64(0)
				for b.Loop() {
					due := w.Pace.Due()
					w.Pace.Next()
					w.Record(due, 5000+i&1023, 2000+i&1023)
					w.Service.Record(2000 + i&1023)
					if i++; raw && w.Raw.N == len(w.Raw.Samples) {
						w.Raw.N = 0 // a full buffer would cost less
					}
				}
			})
		}
	}
}

// The loop on the null session: clock, post, poll, record and verify.
func BenchmarkNullLoop(b *testing.B) {
	b.ReportMetric(drive.MeasureOverhead(engine.Limits{Ops: int64(b.N)}), "ns/sample")
}
