package main

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
)

// ofDevices is how many devices have counters, beside the process itself.
func ofDevices(all []reports.DeviceCounters) (n int) {
	for _, c := range all {
		if !c.Process {
			n++
		}
	}
	return n
}

// Soft stacks over TCP have the kernel's counters of both sides in the document;
// --counters shows those that stood still, too.
func TestRunReadsCounters(t *testing.T) {
	args := []string{"run", "--transport", "tcp,mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50"}
	d := measure(t, args...)
	if c := d.Results[0].Counters; c == nil || ofDevices(c.Client) != 1 || ofDevices(c.Server) != 1 ||
		c.Client[0].Device != devices.TCPDevice || len(c.Client[0].Counters) < 3 {
		t.Errorf("counters of tcp %+v, want the kernel's of both sides", c)
	}
	if c := d.Results[1].Counters; c != nil {
		t.Errorf("counters of mem %+v, want none", c)
	}
	if r := rdmaperf(t, append(args, "--counters")...); strings.Count(strings.Join(strings.Fields(r.stdout), " "),
		"64 bytes, kernel TCP (all connections) counted: InCsumErrors ") != 1 {
		t.Errorf("--counters does not show what stood still:\n%s", r.stdout)
	}
}
