package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
)

// A stream's slots hold each operation of its window once, whatever worker saw it complete and when, and none of the
// warm-up or of the round that verifies. The peak is the rate of the fullest of them.
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
