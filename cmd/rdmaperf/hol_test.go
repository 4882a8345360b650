package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
)

// The head-of-line workload over two transports: every size in both arms.
func TestRunMeasuresHeadOfLine(t *testing.T) {
	args := []string{"run", "--transport", "iwarp,mem", "--workload", "hol", "--bulk-size", "4K,64K", "--bulk-depth",
		"4", "--probe-size", "32", "--probe-interval", "50us",
		"-n", "40", "--warmup", "5", "--probe-priority", "2"}
	d, dir := inAllFormats(t, 2*2*2, args...)
	seen := map[string]bool{}
	for _, res := range d.Results {
		h := hol.Of(&res)
		if h == nil || h.ProbeSizeBytes != 32 || h.ProbeIntervalNs != 50_000 || h.ProbeLoaded.Count != 40 ||
			!res.Verified || res.Depth != 4 {
			t.Fatalf("result %+v", res)
		}
		if res.Parameters["arm"] != h.Arm || res.Parameters["probe_priority"] != 2.0 {
			t.Errorf("parameters %v", res.Parameters)
		}
		seen[h.Arm] = true
	}
	if !seen["same-qp"] || !seen["two-qp"] {
		t.Errorf("arms %v, want both", seen)
	}
	contains(t, contents(t, dir, "text.txt"), "iwarp(crc) [soft]: hol write", "probe size 32, probe interval 50µs",
		"same-qp", "two-qp", "alone bw")
}

// Bulk sends, and a closed loop.
func TestRunMeasuresHeadOfLineOfSends(t *testing.T) {
	d := measure(t, "run", "--transport", "tcp", "--workload", "hol,latency", "--op", "send", "-s", "64",
		"--bulk-size", "64K", "--hol-arm", "same-qp", "--probe-interval", "0", "-n", "40")
	if len(d.Results) != 2 || hol.Of(&d.Results[0]) == nil || d.Results[0].Op != "send" ||
		hol.Of(&d.Results[0]).ProbeIntervalNs != 0 || d.Results[1].Workload != "latency" {
		t.Errorf("results %+v", d.Results)
	}
}

// Variants and stacks share one table.
func TestRunComparesArmsAndSlices(t *testing.T) {
	args := []string{"run", "--transport", "mem,sched(drr,window=256K,slice=4K)+mem,sched(drr,window=256K,slice=16K)+mem",
		"--workload", "hol", "--hol-arm", "same-qp,app-slicing",
		"--bulk-size", "64K", "--app-slice", "8K", "--app-window", "2", "-n", "30", "--warmup", "none"}
	d, dir := inAllFormats(t, 2*3, args...)
	var got []string
	for _, res := range d.Results {
		got = append(got, res.Transport+" "+hol.Of(&res).Arm)
		if want := hol.Of(&res).Arm == "app-slicing"; (hol.Of(&res).AppSliceBytes == 8<<10 &&
			hol.Of(&res).AppWindow == 2) != want || !res.Verified {
			t.Errorf("result %+v, hol %+v", res, hol.Of(&res))
		}
	}
	var want []string
	for _, arm := range []string{"same-qp", "app-slicing"} {
		for _, stack := range []string{"mem", "sched(drr,window=256K,slice=4K)+mem",
			"sched(drr,window=256K,slice=16K)+mem"} {
			want = append(want, stack+" "+arm)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	contains(t, contents(t, dir, "text.txt"), "variants: hol write, bulk of 64 KiB")
}

// Slices of sends are counted where sends are cut.
func TestRunCutsSends(t *testing.T) {
	d := measure(t, "run", "--transport", "mem,sched(slice=4K,window=16K,sends=whole)+mem,"+
		"sched(slice=4K,window=16K,sends=slice)+mem",
		"--workload", "hol", "--op", "send", "--hol-arm", "same-qp",
		"--bulk-size", "64K", "-n", "30", "--warmup", "none")
	var got []string
	for _, res := range d.Results {
		got = append(got, res.Transport)
		cut := int64(0)
		if res.Counters != nil {
			for _, d := range res.Counters.Client {
				cut += d.Counters["sends_cut"]
			}
		}
		if want := strings.Contains(res.Transport, "sends=slice"); (cut > 0) != want || !res.Verified {
			t.Errorf("%s: %d sends cut", res.Transport, cut)
		}
	}
	if want := []string{"mem", "sched(slice=4K,window=16K,sends=whole)+mem",
		"sched(slice=4K,window=16K,sends=slice)+mem"}; !slices.Equal(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
}
