package main

import (
	"strings"
	"testing"
)

// all with less to do: stacks that can do none of it are left out, with a reason.
func TestRunAllLeavesOutWhatCannotRun(t *testing.T) {
	r := runs(t, "run", "--transport", "all", "--workload", "latency", "--op", "read", "-s", "64", "-n", "20",
		"--warmup", "none", "--no-save", "--format", "json")
	var stacks []string
	for _, res := range document(t, []byte(r.stdout)).Results {
		stacks = append(stacks, res.Stack)
	}
	if len(stacks) != 4 || !strings.HasPrefix(stacks[0], "iwarp") || stacks[1] != "tcp" ||
		!strings.HasPrefix(stacks[2], "sched") || !strings.HasPrefix(stacks[3], "lite") {
		t.Errorf("measured %q", stacks)
	}
	contains(t, r.stderr, "Measures 4 stacks", "Left out: grpc(tcp), no operation read", "Left out: mem, ")
}
