package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// One command line measures stacks of sessions and stacks of calls side by side: a stack
// without sessions makes calls, one that has both makes them where it is asked to.
func TestEveryStackRunsLatencyAndThroughput(t *testing.T) {
	for _, c := range []struct {
		transport, op string
		want          []string
	}{
		{"mem,grpc(bufconn),lite+mem", "", []string{
			"mem latency send", "mem latency write", "mem latency read", "mem throughput write",
			"grpc latency call", "grpc throughput call",
			"lite latency send", "lite latency write", "lite latency read", "lite throughput write"}},
		{"lite+mem,grpc(bufconn)", "call", []string{
			"lite latency call", "lite throughput call", "grpc latency call", "grpc throughput call"}},
	} {
		args := []string{"run", "--transport", c.transport, "--workload", "latency,throughput", "-s", "64", "-n", "100",
			"--warmup", "none", "--no-save"}
		if c.op != "" {
			args = append(args, "--op", c.op)
		}
		var got []string
		for _, res := range measure(t, args...).Results {
			name, _, _ := strings.Cut(res.Stack, "(")
			name, _, _ = strings.Cut(name, "+")
			got = append(got, fmt.Sprintf("%s %s %s", name, res.Workload, res.Op))
			switch {
			case res.Operations < 100 || !res.Verified:
				t.Errorf("%s: %d operations, verified %v", got[len(got)-1], res.Operations, res.Verified)
			case res.Workload == "latency" && (res.Latency == nil || res.Op == "call" && res.RoundTrip != "full"):
				t.Errorf("%s: latency %v of a round trip %q", got[len(got)-1], res.Latency, res.RoundTrip)
			case res.Workload == "throughput" &&
				math.Abs(res.Throughput.BytesPerSecond/res.Throughput.OperationsPerSecond-64) > 0.01:
				t.Errorf("%s: %+v for operations of 64 bytes", got[len(got)-1], res.Throughput)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.transport, got, c.want)
		}
	}
}
