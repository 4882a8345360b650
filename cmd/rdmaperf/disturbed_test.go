package main

import (
	"testing"
)

// What was disturbed is known of both sides and all workloads of sessions; a real run has
// threads on both.
func TestRunsLookAtTheMachine(t *testing.T) {
	d := measure(t, "run", "--transport", "tcp", "--workload", "latency,throughput", "--op", "send", "-s", "64", "-n",
		"200")
	for _, res := range d.Results {
		d := res.Disturbance
		if d == nil || d.Verdict == "" || d.Client == nil || d.Client.Threads != 1 || d.Server == nil ||
			d.Server.Threads != 1 {
			t.Errorf("%s: %+v", res.Workload, d)
		}
	}
}
