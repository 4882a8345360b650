package main

import (
	"strings"
	"testing"
)

// The service arm runs beside the others, with the same calls outstanding, over processes
// of its own; what cannot be one says so.
func TestCallsThroughAServiceProcess(t *testing.T) {
	got := rdmaperf(t, "run", "--transport", "grpc(fused)+iwarp,grpc(service)+iwarp,grpc(service,event)+sched+iwarp",
		"--workload", "rpc",
		"-s", "64,100K", "-n", "50", "--outstanding", "1,8")
	if got.code != 0 {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	for _, want := range []string{"grpc(service,bpev,", "grpc(service,event,", "side by side: rpc call",
		"depth 8, 1 connection"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	for spec, c := range map[string]struct {
		code int
		says string
	}{
		"grpc(service)":             {2, "needs an RDMA stack below it"},
		"grpc(service)+mem":         {2, "another one"},
		"grpc(service,best)+iwarp":  {2, "without"},
		"grpc(service)+verbs:nope0": {77, ""},
	} {
		got := rdmaperf(t, "run", "--transport", spec, "--workload", "rpc", "-n", "10")
		if got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: exit %d, want %d: %s", spec, got.code, c.code, got.stderr)
		}
	}
}
