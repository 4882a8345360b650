package main

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Side by side all stacks take their samples in the same loop; alone, in the best that
// they have; and a loop that a stack lacks is an error and not another loop.
func TestStacksSideBySideShareTheLoop(t *testing.T) {
	for _, c := range []struct {
		transports, loop, want string
		code                   int
	}{
		{"mem", "auto", "provider", 0},
		{"mem", "plain", "plain", 0},
		{"mem,sched+mem", "auto", "plain", 0},
		{"sched+mem", "provider", "", reports.ExitUsage},
		{"mem", "perftest", "", reports.ExitUsage},
	} {
		t.Run(c.transports+" "+c.loop, func(t *testing.T) {
			r := rdmaperf(t, "run", "--transport", c.transports, "--loop", c.loop, "--workload", "latency", "--op",
				"send", "-s", "64", "-n", "200", "--format", "json", "--no-save")
			if r.code != c.code {
				t.Fatalf("exit code %d, want %d: %s", r.code, c.code, r.stderr)
			}
			if c.code != 0 {
				return
			}
			doc := document(t, []byte(r.stdout))
			for _, res := range doc.Results {
				if got := res.Parameters["loop"]; got != c.want {
					t.Errorf("%s: loop %v, want %v", res.Stack, got, c.want)
				}
			}
		})
	}
}
