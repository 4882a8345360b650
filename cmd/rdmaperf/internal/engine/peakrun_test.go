package engine_test

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"testing"
	"time"
)

// A stream's slots hold each operation of its window once, whatever worker saw it
// complete and when, and none of the warm-up or of the round that verifies. The peak is
// the rate of the fullest of them.
func TestStreamsHaveAPeak(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: "write", Size: 64})
	plan.Iterations, plan.Duration, plan.QPs, plan.Threads = 0, 100*time.Millisecond, 2, 2
	client, server := enginetest.SessionEnds(t, enginetest.TcpEnds)
	c, err := engine.Connect(t.Context(), enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)}), client, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sh, err := c.Shape(plan.Points[0])
	if err != nil {
		t.Fatal(err)
	}
	m := &engine.Measurement{C: c, Sh: sh}
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := m.Result() // folds the slots
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
	if d := tp.PeakBytesPerSecond - max(want, tp.BytesPerSecond); tp.PeakOverNs < int64(time.Millisecond) || d > 1 || d < -1 {
		t.Errorf("throughput %+v, want a peak of %v, that of the fullest slot", tp, want)
	}
}
