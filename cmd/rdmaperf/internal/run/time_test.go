package run

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
)

func TestPlannedTime(t *testing.T) {
	p := &engine.Plan{Duration: time.Second, WarmupDuration: 200 * time.Millisecond}
	for _, c := range []struct {
		pt   engine.Point
		want time.Duration
	}{{engine.Point{}, 1200 * time.Millisecond}, {hol.NewPoint("write", 1<<20, hol.SameQP, hol.Options{}),
		3200 * time.Millisecond}, {engine.Point{Time: time.Minute}, time.Minute}} {
		if got := p.PlannedTime(c.pt); got != c.want {
			t.Errorf("%s: %v, want %v", c.pt, got, c.want)
		}
	}
	if got := (&engine.Plan{Iterations: 5}).PlannedTime(engine.Point{}); got != 0 {
		t.Errorf("counted operations: %v, want unknown", got)
	}
}
