package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
)

// The arm device is measured on the scheduled stacks alone, with one scheduler for all
// queue pairs, and the result's stack says so; the other arms are as they were given.
func TestRunMeasuresTheDeviceArm(t *testing.T) {
	args := []string{"run", "--workload", "hol", "--bulk-size", "64K", "--bulk-depth", "4", "-n", "20", "--warmup",
		"none", "--probe-gap", "0", "--no-save"}
	for _, c := range []struct {
		transport, arms string
		want            []string
	}{
		{"mem,sched+mem", "same-qp,device", []string{"mem same-qp", "sched(strict,slice=auto,window=auto)+mem same-qp",
			"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
		{"mem,sched+mem", "device", []string{"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
		{"sched(scope=device)+mem", "two-qp,device",
			[]string{"sched(strict,slice=auto,window=auto,scope=device)+mem two-qp",
				"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
	} {
		var got []string
		for _, res := range measure(t, append(args, "--transport", c.transport, "--hol-arm", c.arms)...).Results {
			h := hol.Of(&res)
			got = append(got, res.Stack+" "+h.Arm)
			if !res.Verified || h.ProbeLoaded.Count != 20 || h.Arm == "device" && res.QPs != 2 {
				t.Errorf("%s: %+v", got[len(got)-1], res)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.transport, c.arms, got, c.want)
		}
	}
}

// Stacks of messages and stacks of calls share one table of each workload.
func TestRunPutsCallsBesideMessages(t *testing.T) {
	fulltest.Only(t, "many stacks and points")
	r := runs(t, "run", "--transport", "mem,sched+mem,grpc(bufconn),grpc(fused)+mem", "--workload",
		"latency,throughput,hol", "-s", "64", "--bulk-size", "64K", "--bulk-depth", "4",
		"-n", "50", "--warmup", "none", "--no-save", "--details")
	for _, c := range []struct{ title, end string }{{"all stacks: latency", "all stacks: throughput"},
		{"all stacks: throughput", "variants: hol"}, {"variants: hol", "\nWhat you can rely on"}} {
		_, table, _ := strings.Cut(r.stdout, c.title)
		table, _, _ = strings.Cut(table, c.end)
		contains(t, table, "1: mem\n", "2: sched(", "3: grpc(bufconn", "4: grpc(fused", "  call ")
	}
	if strings.Count(r.stdout, "variants: hol") != 1 {
		t.Error("several tables of arms")
	}
}
