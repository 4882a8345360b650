package run

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
)

func TestPlannedTime(t *testing.T) {
	p := &engine.Plan{Duration: time.Second, WarmupDuration: 200 * time.Millisecond}
	for workload, want := range map[string]time.Duration{latency.Name: 1200 * time.Millisecond, hol.Name: 3200 * time.Millisecond} {
		if got := plannedTime(p, engine.Point{Workload: workload}); got != want {
			t.Errorf("%s: %v, want %v", workload, got, want)
		}
	}
	if got := plannedTime(&engine.Plan{Iterations: 5}, engine.Point{}); got != 0 {
		t.Errorf("counted operations: %v, want unknown", got)
	}
}
