package main

import (
	"strings"
	"testing"
)

// all with less to do: stacks that can do none of it are left out, with a reason.
func TestRunAllLeavesOutWhatCannotRun(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "all", "--workload", "latency", "--op", "read", "-s", "64", "-n", "20",
		"--warmup", "none", "--no-save", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d, %s", r.code, r.stderr)
	}
	var stacks []string
	for _, res := range document(t, []byte(r.stdout)).Results {
		stacks = append(stacks, res.Stack)
	}
	if len(stacks) != 4 || !strings.HasPrefix(stacks[0], "iwarp") || stacks[1] != "tcp" ||
		!strings.HasPrefix(stacks[2], "sched") || !strings.HasPrefix(stacks[3], "lite") {
		t.Errorf("measured %q", stacks)
	}
	for _, w := range []string{"Measures 4 stacks", "Left out: grpc(tcp), no operation read", "Left out: mem, "} {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("stderr lacks %q:\n%s", w, r.stderr)
		}
	}
}
