package main

import "testing"

// Side by side all stacks take their samples in the same loop; alone, in the best that
// they have; and a loop that a stack lacks is an error and not another loop.
func TestStacksSideBySideShareTheLoop(t *testing.T) {
	for _, c := range []struct{ transports, loop, want string }{
		{"mem", "auto", "provider"},
		{"mem", "plain", "plain"},
		{"mem,sched+mem", "auto", "plain"},
	} {
		t.Run(c.transports+" "+c.loop, func(t *testing.T) {
			d := measure(t, "run", "--transport", c.transports, "--loop", c.loop, "--workload", "latency", "--op",
				"send", "-s", "64", "-n", "200", "--no-save")
			for _, res := range d.Results {
				if got := res.Parameters["loop"]; got != c.want {
					t.Errorf("%s: loop %v, want %v", res.Stack, got, c.want)
				}
			}
		})
	}
}
