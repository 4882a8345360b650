package main

import (
	"testing"
)

// The service arm runs beside the others, with the same calls outstanding, over processes
// of its own; what cannot be one says so.
func TestCallsThroughAServiceProcess(t *testing.T) {
	got := runs(t, "run", "--transport", "grpc(fused)+iwarp,grpc(service)+iwarp,grpc(service,event)+sched+iwarp",
		"--workload", "rpc",
		"-s", "64,100K", "-n", "50", "--outstanding", "1,8")
	contains(t, got.stdout, "grpc(service,bpev,", "grpc(service,event,", "side by side: rpc call",
		"depth 8, 1 connection")
}
