package main

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
)

// Two classes on one QP of a scheduler, over iwarp and in one process.
func TestRunStarves(t *testing.T) {
	args := []string{"run", "--transport", "sched(strict)+mem,sched(drr)+iwarp", "--workload", "starvation",
		"--high-load", "0,100", "--high-priority", "7", "-s", "16K", "-n", "200", "--warmup", "5"}
	results := measure(t, args...).Results
	if len(results) != 4 {
		t.Fatalf("%d results, want 4", len(results))
	}
	for i, res := range results {
		s := starvation.Of(&res)
		if s == nil || res.SizeBytes != 16<<10 || !res.Verified || s.HighPriority != 7 ||
			s.HighLoadPercent != []float64{0, 0, 100, 100}[i] || res.Operations < 200 {
			t.Errorf("result %+v, starvation %+v", res, s)
		}
	}
}
