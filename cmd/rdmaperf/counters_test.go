package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/devices"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The full name of a stack leads to the device at its bottom.
func TestCountersAreOfTheDeviceBelow(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	h := devices.Host{Root: fstest.MapFS{
		"sys/class/infiniband/rxe0/ports/1/counters/port_rcv_packets": file("1\n"),
		"sys/class/infiniband/rxe0/ports/2/counters/port_rcv_packets": file("2\n"),
		"proc/net/snmp": file("Tcp: RetransSegs\nTcp: 3\n"),
	}}
	packets := func(port int) reports.DeviceCounters {
		return reports.DeviceCounters{Device: "rxe0", Port: port, Counters: map[string]int64{"port_rcv_packets": int64(port)}}
	}
	tcp := []reports.DeviceCounters{{Device: devices.TCPDevice, Counters: map[string]int64{"RetransSegs": 3}}}
	for stack, want := range map[string][]reports.DeviceCounters{
		"verbs:rxe0":       {packets(1), packets(2)},
		"verbs:rxe0/2":     {packets(2)},
		"verbs(cm):rxe0/1": {packets(1)},
		"sched(strict,slice=16KiB)+verbs(cm,port=2):rxe0": {packets(2)},
		"verbs:mlx5_0":               nil,
		"verbs":                      nil,
		"iwarp(crc)":                 tcp,
		"tcp(nodelay)":               tcp,
		"sched(strict)+iwarp(nocrc)": tcp,
		"mem":                        nil,
		"not a stack(":               nil,
	} {
		var got []reports.DeviceCounters
		if read := countersOn(h, stack); read != nil {
			got = read()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stack, diff)
		}
	}
}

// Soft stacks over TCP have the kernel's counters of both sides in the document;
// --counters shows those that stood still, too.
func TestRunReadsCounters(t *testing.T) {
	args := []string{"run", "--transport", "tcp,mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50"}
	r := rdmaperf(t, append(args, "--format", "json")...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
	if c := d.Results[0].Counters; c == nil || len(c.Client) != 1 || len(c.Server) != 1 || c.Client[0].Device != devices.TCPDevice || len(c.Client[0].Counters) < 3 {
		t.Errorf("counters of tcp %+v, want the kernel's of both sides", c)
	}
	if c := d.Results[1].Counters; c != nil {
		t.Errorf("counters of mem %+v, want none", c)
	}
	if r = rdmaperf(t, append(args, "--counters")...); strings.Count(strings.Join(strings.Fields(r.stdout), " "), "64 bytes, kernel TCP (all connections) counted: InCsumErrors ") != 1 {
		t.Errorf("--counters does not show what stood still:\n%s", r.stdout)
	}
}
