package reports_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// Both arms and all bulk sizes stand in one table, with what grew.
func TestHeadOfLineTable(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, size := range []int64{64 << 10, 1 << 20} {
		for i, arm := range []string{holkind.ArmSameQP, holkind.ArmTwoQP} {
			d.Results = append(d.Results, reports.Result{
				Stack: "iwarp(crc)", Label: reports.LabelSoft, Workload: "hol", Op: "write", SizeBytes: size, Depth: 16, QPs: 1 + i, Threads: 1,
				Polling: reports.PollingBusy, RoundTrip: reports.RoundTripFull, MeasuredBy: "client", DurationNs: 1e9, Operations: 2000, Verified: true,
				Kind: kind("hol"), Detail: &holkind.HOL{Arm: arm, BulkSizeBytes: size, ProbeSizeBytes: 64, ProbeIntervalNs: 500_000,
					ProbeAlone: *latency(2000, 15_500), ProbeLoaded: *latency(1999, float64(size)*4), BulkAloneBytesPerSecond: 2.5e9, BulkLoadedBytesPerSecond: 2.4e9},
			})
		}
	}
	for _, stack := range []string{"iwarp(crc)", "sched(strict,slice=16KiB,window=auto)+iwarp(crc)", "sched(strict,slice=64KiB,window=auto)+iwarp(crc)"} {
		r := d.Results[2]
		h := *holkind.Of(&r)
		h.ProbeLoaded = *latency(1999, 90_000)
		if r.Stack = stack; stack == "iwarp(crc)" {
			h.Arm, h.AppSliceBytes, h.AppWindow = holkind.ArmAppSlicing, 64<<10, 4
		}
		r.Kind, r.Detail = kind("hol"), &h
		d.Results = append(d.Results, r)
	}
	closed := d.Results[3]
	h := *holkind.Of(&closed)
	h.ProbeIntervalNs, h.Arm, h.ProbeAlone, h.ProbeLoaded = 0, "", *latency(0, 0), *latency(3, 900)
	closed.Detail, closed.Stack = &h, "tcp"
	d.Results = append(d.Results, closed)
	reporttest.Validate(t, encode(t, d))
	golden(t, "bench-hol.txt", bench(t, d))
	golden(t, "text-hol.txt", text(t, d, textformat.Options{}))
	golden(t, "text-hol-gbits.txt", text(t, d, textformat.Options{Gbits: true, Width: 80}))
}

// Stacks that differ in the slice of their scheduler alone make a curve of the
// probes' tail and one of the bulk; each is held against the stack without its tiers.
func TestSliceSweep(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	add := func(stack, arm string, p99 float64) {
		d.Results = append(d.Results, reports.Result{
			Stack: stack, Label: reports.LabelSoft, Workload: "hol", Op: "write", SizeBytes: 1 << 20, Depth: 16, QPs: 1,
			Polling: reports.PollingBusy, DurationNs: 1e9, Operations: 2000, Verified: true,
			Kind: kind("hol"), Detail: &holkind.HOL{Arm: arm, BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64,
				ProbeAlone: *latency(2000, 15_500), ProbeLoaded: *latency(2000, p99), BulkAloneBytesPerSecond: 2.5e9, BulkLoadedBytesPerSecond: 2.4e9},
		})
	}
	add("iwarp(crc)", holkind.ArmSameQP, 4e6)
	add("iwarp(crc)", holkind.ArmTwoQP, 1e6)
	page := func() string {
		var out bytes.Buffer
		if err := htmlformat.Write(&out, []*reports.Document{d}, pages.Options{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	add("sched(drr,slice=16KiB,window=auto,weights=1:2)+iwarp(crc)", holkind.ArmSameQP, 1e5)
	add("sched(drr,slice=auto,window=auto,weights=1:2)+iwarp(crc)", holkind.ArmSameQP, 1e5)
	if strings.Contains(page(), `id="slices"`) {
		t.Error("a curve through one slice")
	}
	add("sched(drr,slice=64KiB,window=auto,weights=1:2)+iwarp(crc)", holkind.ArmSameQP, 2e5)
	got := page()
	for _, want := range []string{`id="slices"`, "Slice of the scheduler, bulk of 1 MiB, same-qp: probe latency", "Slice of the scheduler, bulk of 1 MiB, same-qp: bulk throughput",
		"sched(drr,window=auto,weights=1:2)", "16 KiB"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(got, "Window of the scheduler") {
		t.Error("a curve of a window that is the same everywhere")
	}
	add("sched(drr,slice=16KiB,window=128KiB,weights=1:2)+iwarp(crc)", holkind.ArmSameQP, 1e5)
	add("sched(drr,slice=16KiB,window=1MiB,weights=1:2)+iwarp(crc)", holkind.ArmSameQP, 3e5)
	if got = page(); !strings.Contains(got, "Window of the scheduler, bulk of 1 MiB, same-qp: probe latency") || !strings.Contains(got, "sched(drr,slice=16KiB,weights=1:2)") {
		t.Error("no curve of the window")
	}
	table := string(text(t, d, textformat.Options{}))
	_, table, _ = strings.Cut(table, "arms side by side")
	gain := number(t, holkind.Of(&d.Results[0]).ProbeLoaded.P99/holkind.Of(&d.Results[2]).ProbeLoaded.P99)
	if !strings.Contains(table, "stack without its tiers") || !strings.Contains(table, gain+"x") {
		t.Errorf("no gain of %sx over raw in:\n%s", gain, table)
	}
}

func number(t *testing.T, v float64) string {
	t.Helper()
	return strconv.FormatFloat(v, 'f', 2, 64)
}
