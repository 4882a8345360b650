package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
)

// A training on a scheduler and on what it stands on: every ratio in both arms, with
// the levels that the stack tells apart, from a file of the user's own.
func TestRunTrains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.csv")
	if err := os.WriteFile(file, []byte("tensor,parameters,multiply_adds\na,1000,10\nb,9,0\nc,50000,90\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--transport", "iwarp,sched+iwarp", "--model", file, "--tensor-bytes", "2",
		"--compute-ratio", "0,1", "-n", "4", "--warmup", "1"}
	d := measure(t, args...)
	var got []string
	for _, res := range d.Results {
		ps := paramserver.Of(&res)
		if ps == nil || res.Workload != "paramserver" || ps.Model != "mine" || ps.Parameters != 51_009 ||
			res.SizeBytes != 102_018 || res.Operations != 4 || !res.Verified || ps.MeanHigh < ps.Iteration.Mean {
			t.Fatalf("result %+v, training %+v", res, ps)
		}
		levels := 1
		if strings.HasPrefix(res.Stack, "sched") && ps.Arm == "priority" {
			levels = 8
		}
		if ps.Levels != levels {
			t.Errorf("%s %s: %d levels, want %d", res.Stack, ps.Arm, ps.Levels, levels)
		}
		got = append(got, res.Transport+" "+ps.Arm)
	}
	one := []string{"iwarp fifo", "sched+iwarp fifo", "iwarp priority", "sched+iwarp priority"}
	if !slices.Equal(got, append(one, one...)) {
		t.Errorf("results %q", got)
	}
}
