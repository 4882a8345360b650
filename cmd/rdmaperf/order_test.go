package main

import "testing"

// The published example of sRDMA on a live connection: B G G B on the wire, G completes
// first. Post order shows the opposite.
func TestOrderShowsThePublishedExample(t *testing.T) {
	for _, size := range []string{"8K", "128K", "1M"} {
		contains(t, runs(t, "order", "--size", size).stdout, "wire       B G G B\n", "completed  G B\n",
			"as published\n")
	}
	contains(t, runs(t, "order", "--transport", "sched(fifo)+iwarp", "--size", "8K").stdout, "wire       B G\n",
		"completed  B G\n")
}
