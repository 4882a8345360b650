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
	r, dir := inAllFormats(t, args...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
	if len(d.Results) != 2*2*2 {
		t.Fatalf("%d results, want 8", len(d.Results))
	}
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
	text := contents(t, dir, "text.txt")
	for _, want := range []string{"iwarp(crc) [soft]: hol write", "probe size 32, probe interval 50µs", "same-qp",
		"two-qp",
		"alone bw"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

// Bulk sends, and a closed loop.
func TestRunMeasuresHeadOfLineOfSends(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "tcp", "--workload", "hol,latency", "--op", "send", "-s", "64",
		"--bulk-size", "64K", "--hol-arm", "same-qp", "--probe-interval", "0", "-n", "40", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
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
	r, dir := inAllFormats(t, args...)
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	var got []string
	for _, res := range document(t, []byte(r.stdout)).Results {
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
	if text := contents(t, dir, "text.txt"); !strings.Contains(text,
		"variants: hol write, bulk of 64 KiB") {
		t.Errorf("no variants:\n%s", text)
	}
}

// Slices of sends are counted where sends are cut.
func TestRunCutsSends(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "mem,sched(slice=4K,window=16K,sends=whole)+mem,"+
		"sched(slice=4K,window=16K,sends=slice)+mem",
		"--workload", "hol", "--op", "send", "--hol-arm", "same-qp",
		"--bulk-size", "64K", "-n", "30", "--warmup", "none", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	var got []string
	for _, res := range document(t, []byte(r.stdout)).Results {
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

// What makes no sense for the variants is refused by name.
func TestRunRefusesArmsAndSlices(t *testing.T) {
	for _, c := range [][]string{
		{"hol-arm app-slicing", "--workload", "hol", "--app-slice", "8K"},
		{"hol-arm app-slicing", "--workload", "hol", "--app-window", "3"},
		{"--app-window: 0", "--workload", "hol", "--hol-arm", "app-slicing", "--app-window", "0"},
		{"want 1 KiB", "--workload", "hol", "--hol-arm", "app-slicing", "--app-slice", "10"},
		{"app-slicing is of write", "--workload", "hol", "--hol-arm", "app-slicing", "--op", "send"},
		{"for --workload hol", "--workload", "latency", "--app-slice", "8K"},
		{`parameter "sends=half"`, "--transport", "sched(sends=half)+mem", "--workload", "hol"},
		{"slice of 1 bytes", "--transport", "sched(slice=1)+mem", "--workload", "hol"},
	} {
		r := rdmaperf(t, append([]string{"run", "--transport", "mem"}, c[1:]...)...)
		if r.code != 2 || !strings.Contains(r.stderr, c[0]) {
			t.Errorf("%q: exit %d, stderr %q, want 2 and %q", c[1:], r.code, r.stderr, c[0])
		}
	}
}
