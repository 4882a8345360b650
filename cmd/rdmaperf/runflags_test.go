package main

import (
	"strings"
	"testing"
)

// A mistake names the flag that is wrong, whatever else is read in the same step.
func TestRunNamesTheWrongFlag(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-s 0", "--size: sizes start"},
		{"--clients none", `--clients: "none"`},
		{"--clients 1.5", `--clients: "1.5"`},
		{"--concurrency 5:1:1", `--concurrency: "5:1:1"`},
		{"--qp-sweep 1,x", `--qp-sweep: "1,x"`},
		{"--rate 0", "--rate: 0"},
		{"--rate-sweep 1,1", `--rate-sweep: "1,1"`},
		{"--model nosuch", `--model: model "nosuch"`},
		{"--compute-ratio fast", `--compute-ratio: "fast"`},
		{"--high-load much", `--high-load: "much"`},
		{"--high-load 5,5.0", "--high-load: 5 is given twice"},
		{"--bulk-depth 0", "--bulk-depth: 0"},
		{"--probe-interval soon", `--probe-interval: "soon"`},
		{"--bulk-size 1M,x", "--bulk-size: "},
		{"--workload hol -q 2", "--workload: hol has one thread"},
		{"--workload incast -q 2", "--qp: the connections"},
	} {
		r := rdmaperf(t, append([]string{"run", "--transport", "mem"}, strings.Fields(c.args)...)...)
		if r.code != 2 || !strings.HasPrefix(r.stderr, "rdmaperf: read "+c.want) {
			t.Errorf("run %s: exit %d, stderr %q, want 2 and %q", c.args, r.code, r.stderr, c.want)
		}
	}
}
