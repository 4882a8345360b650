package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
)

// Two classes on one QP of a scheduler, over iwarp and in one process.
func TestRunStarves(t *testing.T) {
	args := []string{"run", "--transport", "sched(strict)+mem,sched(drr)+iwarp", "--workload", "starvation",
		"--high-load", "0,100", "--high-priority", "7", "-s", "16K", "-n", "200", "--warmup", "5"}
	r := rdmaperf(t, append(args, "--format", "json")...)
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	results := document(t, []byte(r.stdout)).Results
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
	for _, c := range [][]string{
		{"high priority 8 is above the limit of 7", "--transport", "sched+mem", "--high-priority", "8"},
		{`--high-load: "much"`, "--transport", "mem", "--high-load", "much"},
		{"twice", "--transport", "mem", "--high-load", "1,1.0"},
		{"both classes are of write", "--transport", "mem", "--workload", "starvation", "--op", "send"},
		{"for --workload starvation", "--transport", "mem", "--workload", "hol", "--high-load", "1"},
		{"one QP", "--transport", "mem", "--workload", "starvation", "-q", "2"},
	} {
		r := rdmaperf(t, append([]string{"run"}, c[1:]...)...)
		if r.code != 2 || !strings.Contains(r.stderr, c[0]) {
			t.Errorf("%q: exit %d, stderr %q, want 2 and %q", c[1:], r.code, r.stderr, c[0])
		}
	}
}
