package main

import (
	"strings"
	"testing"
)

// The published example of sRDMA on a live connection: B G G B on the wire, G completes
// first. Post order shows the opposite.
func TestOrderShowsThePublishedExample(t *testing.T) {
	for _, size := range []string{"8K", "128K", "1M"} {
		r := rdmaperf(t, "order", "--size", size)
		for _, want := range []string{"wire       B G G B\n", "completed  G B\n", "as published\n"} {
			if r.code != 0 || !strings.Contains(r.stdout, want) {
				t.Errorf("%s: exit %d, %q lacks %q, stderr %q", size, r.code, r.stdout, want, r.stderr)
			}
		}
	}
	r := rdmaperf(t, "order", "--transport", "sched(fifo)+iwarp", "--size", "8K")
	if r.code != 0 || !strings.Contains(r.stdout, "wire       B G\n") ||
		!strings.Contains(r.stdout, "completed  B G\n") {
		t.Errorf("exit %d, %q, want post order", r.code, r.stdout)
	}
	for want, args := range map[string][]string{
		"outermost layer has to be sched": {"order", "--transport", "iwarp"},
		"want 2 bytes":                    {"order", "--size", "1"},
	} {
		if r := rdmaperf(t, args...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit %d, %q, want 2 and %q", args, r.code, r.stderr, want)
		}
	}
}
