package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The head-of-line workload over two transports: every size in both arms.
func TestRunMeasuresHeadOfLine(t *testing.T) {
	d, dir := inAllFormats(t, 2*2*2, "run", "--transport", "iwarp,mem", "--workload", "hol", "--bulk-size", "4K,64K",
		"--bulk-depth", "4", "--probe-size", "32", "--probe-interval", "50us", "-n", "40", "--warmup", "5",
		"--probe-priority", "2")
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
	d, dir := inAllFormats(t, 2*3, "run", "--transport",
		"mem,sched(drr,window=256K,slice=4K)+mem,sched(drr,window=256K,slice=16K)+mem", "--workload", "hol", "--hol-arm",
		"same-qp,app-slicing", "--bulk-size", "64K", "--app-slice", "8K", "--app-window", "2", "-n", "30", "--warmup", "none")
	var got []string
	for _, res := range d.Results {
		got = append(got, res.Transport+" "+hol.Of(&res).Arm)
		if want := hol.Of(&res).Arm == "app-slicing"; (hol.Of(&res).AppSliceBytes == 8<<10 &&
			hol.Of(&res).AppWindow == 2) != want || !res.Verified {
			t.Errorf("result %+v, hol %+v", res, hol.Of(&res))
		}
	}
	equal(t, got, []string{"mem same-qp", "sched(drr,window=256K,slice=4K)+mem same-qp",
		"sched(drr,window=256K,slice=16K)+mem same-qp", "mem app-slicing",
		"sched(drr,window=256K,slice=4K)+mem app-slicing", "sched(drr,window=256K,slice=16K)+mem app-slicing"})
	contains(t, contents(t, dir, "text.txt"), "variants: hol write, bulk of 64 KiB")
}

// Slices of sends are counted where sends are cut.
func TestRunCutsSends(t *testing.T) {
	d := measure(t, "run", "--transport", "mem,sched(slice=4K,window=16K,sends=whole)+mem,"+
		"sched(slice=4K,window=16K,sends=slice)+mem", "--workload", "hol", "--op", "send", "--hol-arm", "same-qp",
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
	equal(t, got, []string{"mem", "sched(slice=4K,window=16K,sends=whole)+mem",
		"sched(slice=4K,window=16K,sends=slice)+mem"})
}

// Two mixes side by side on two carriers, in one scenario file with tensors.
func TestRunMixesAndTensors(t *testing.T) {
	dir := t.TempDir()
	file := scenarioIn(t, `version: 1
defaults: {transport: ["grpc(unix)", "grpc(fused)+iwarp"], warmup: 3}
runs:
 - {name: store, ycsb: [b, E], records: 200, fields: 2, field-bytes: 50, max-scan: 5, outstanding: 2, iters: 60}
 - {name: tensors, tensor: exchange, size: [1K, 100K], iters: 5}
`)
	jsonFile := filepath.Join(dir, "r.json")
	r := runs(t, "run", "--scenario", file, "--json", jsonFile)
	var got []string
	for _, res := range documentOf(t, jsonFile).Results {
		switch {
		case kv.Of(&res) != nil && res.Workload == "kv" && kv.Of(&res).FieldBytes == 50 &&
			kv.Of(&res).Records == 200 && res.SizeBytes == 100 && res.Depth == 2 && len(kv.Of(&res).Operations) > 0:
			got = append(got, res.Transport+" "+kv.Of(&res).Mix)
		case callsresults.Of(&res) != nil && res.Workload == "tensor" && callsresults.Of(&res).Call == "exchange" &&
			res.Depth == 1:
			got = append(got, res.Transport+" tensor")
		default:
			t.Errorf("result %+v", res)
		}
	}
	slices.Sort(got)
	want := "grpc(fused)+iwarp b, grpc(fused)+iwarp e, grpc(fused)+iwarp tensor, grpc(fused)+iwarp tensor, " +
		"grpc(unix) b, grpc(unix) e, grpc(unix) tensor, grpc(unix) tensor"
	if strings.Join(got, ", ") != want {
		t.Errorf("results %q, want %q", got, want)
	}
	contains(t, r.stdout, "side by side: kv call", "depth 2, 1 connection", "depth 1, 1 connection",
		"store bbolt", "max scan", "a tensor each way")
	runs(t, "report", jsonFile, "-o", filepath.Join(dir, "r.html"))
	contains(t, contents(t, dir, "r.html"), `id="kv"`)
}

// A training on a scheduler and on what it stands on: every ratio in both arms, with
// the levels that the stack tells apart, from a file of the user's own.
func TestRunTrains(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.csv")
	must(t, os.WriteFile(file, []byte("tensor,parameters,multiply_adds\na,1000,10\nb,9,0\nc,50000,90\n"), 0o644))
	d := measure(t, "run", "--transport", "iwarp,sched+iwarp", "--model", file, "--tensor-bytes", "2", "--compute-ratio",
		"0,1", "-n", "4", "--warmup", "1")
	var got []string
	for _, res := range d.Results {
		ps := paramserver.Of(&res)
		if ps == nil || res.Workload != "paramserver" || ps.Model != "mine" || ps.Parameters != 51_009 ||
			res.SizeBytes != 102_018 || res.Operations != 4 || !res.Verified || ps.MeanHigh < ps.Iteration.Mean {
			t.Fatalf("result %+v, training %+v", res, ps)
		}
		several := strings.HasPrefix(res.Stack, "sched") && ps.Arm == "priority"
		if several && ps.Levels != 8 || !several && ps.Levels != 1 {
			t.Errorf("%s %s: %d levels", res.Stack, ps.Arm, ps.Levels)
		}
		got = append(got, res.Transport+" "+ps.Arm)
	}
	one := []string{"iwarp fifo", "sched+iwarp fifo", "iwarp priority", "sched+iwarp priority"}
	equal(t, got, append(one, one...))
}

// Two classes on one QP of a scheduler, over iwarp and in one process.
func TestRunStarves(t *testing.T) {
	results := measure(t, "run", "--transport", "sched(strict)+mem,sched(drr)+iwarp", "--workload", "starvation",
		"--high-load", "0,100", "--high-priority", "7", "-s", "16K", "-n", "200", "--warmup", "5").Results
	if len(results) != 4 {
		t.Fatalf("%d results, want 4", len(results))
	}
	for i, res := range results {
		s := starvation.Of(&res)
		if s == nil || res.SizeBytes != 16<<10 || !res.Verified || s.HighPriority != 7 ||
			s.HighLoadPercent != []float64{0, 0, 100, 100}[i] || res.Operations < 200 {
			t.Errorf("result %+v, starvation %+v", res, s)
		}
	}
}

// Registrations are measured with real page pinning where no device is named, and with
// a device where one is; the page has the curves.
func TestRunRegister(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		stack, label string
		args         []string
	}{
		{"pin", reports.LabelSoft, nil},
		{"iwarp(crc)", reports.LabelSoft, []string{"--transport", "iwarp"}},
		{"regcache+mem", reports.LabelMem, []string{"--transport", "regcache+mem"}},
	} {
		out := filepath.Join(dir, c.label+c.stack[:3])
		r := rdmaperf(t, append([]string{"run", "--workload", "register", "-s", "8K,64K", "-D", "2ms",
			"--register-threads", "1,2", "--working-set", "2,8", "--capacity", "4", "--output", out}, c.args...)...)
		if c.stack == "pin" && r.code == reports.ExitNotRun {
			t.Log("skipped: no io_uring here")
			continue
		}
		if r.code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", c.stack, r.code, r.stdout, r.stderr)
		}
		d := documentOf(t, filepath.Join(out, "result.json"))
		seen := map[string]bool{}
		for _, res := range d.Results {
			x := register.Of(&res)
			if x == nil || res.Stack != c.stack || res.Label != c.label || res.Operations == 0 {
				t.Fatalf("%s: %+v, detail %+v", c.stack, res, x)
			}
			seen[res.Op+" "+x.Arm+" "+x.Offload] = true
		}
		for _, want := range []string{"repeated none hop", "repeated prereg+lazy none", "new cache none",
			"new prereg none", "random cache none", "overlapping none none", "set cache none", "threads none none",
			"replaced cache none"} {
			if !seen[want] {
				t.Errorf("%s: no point %q among %v", c.stack, want, seen)
			}
		}
		contains(t, strings.Join(strings.Fields(r.stdout), " "), "odp unsupported: "+c.stack+
			" declares no on-demand paging")
		contains(t, contents(t, out, "report.html"), "Registration repeated: register p50 by size", "Registration set: set hits",
			"Registration new: unmap p50", "Registration threads: each")
	}
}

// The published example of sRDMA on a live connection: B G G B on the wire, G completes
// first. Post order shows the opposite.
func TestOrderShowsThePublishedExample(t *testing.T) {
	for _, size := range []string{"8K", "128K", "1M"} {
		contains(t, runs(t, "order", "--size", size).stdout, "wire       B G G B\n", "completed  G B\n", "as published\n")
	}
	contains(t, runs(t, "order", "--transport", "sched(fifo)+iwarp", "--size", "8K").stdout, "wire       B G\n",
		"completed  B G\n")
}
