package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		line    line
		code    int
		verdict string
	}{
		{line{Name: "met", Verdict: targets.Pass}, reports.ExitOK, ""},
		{line{Name: "of no target"}, reports.ExitOK, ""},
		{line{Name: "missed", Verdict: targets.Fail}, reports.ExitThreshold, "target missed: missed"},
		{line{Name: "absent", Verdict: targets.NotMeasured}, reports.ExitFailed, "not measured: absent"},
	} {
		err := outcome([]line{{Name: "first", Verdict: targets.Pass}, c.line})
		if reports.Code(err) != c.code || c.verdict != "" && !strings.Contains(err.Error(), c.verdict) {
			t.Errorf("%s: %v, exit %d, want %d", c.line.Name, err, reports.Code(err), c.code)
		}
	}
}

// A bound is met by what equals it, and missed by what is on its wrong side.
func TestLinesAgainstBounds(t *testing.T) {
	for _, w := range rows() {
		if w.bound == 0 {
			continue
		}
		for off, want := range map[float64]targets.Verdict{0: targets.Pass, 0.01: targets.Pass, -0.01: targets.Fail} {
			x := w.bound + off*w.bound
			if w.less {
				x = w.bound - off*w.bound
			}
			m := measures{}
			for r, scale := range []float64{1, 4, 0.5} { // a repeat that ran slower changes no ratio
				m.add(w.beside, r, 1024*scale)
				if w.minus {
					m.add(w.series, r, 1024*scale+x)
				} else {
					m.add(w.series, r, 1024*scale*x)
				}
			}
			for _, l := range m.lines() {
				if l.Name == w.name && l.Verdict != want {
					t.Errorf("%s at %v: %q, want %q", w.name, l.Value, l.Verdict, want)
				}
				if l.Series != w.series && l.Series != w.beside && l.Verdict != targets.NotMeasured {
					t.Errorf("%s: %q without a measurement", l.Name, l.Verdict)
				}
			}
		}
	}
}

func TestFiguresComeOutOfTheirFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "d.json")
	doc := &reports.Document{Results: []reports.Result{
		{Stack: "s", Transport: "iwarp", Label: reports.LabelSoft, Workload: "throughput", Op: "write", SizeBytes: 64, Depth: 1, QPs: 1, Repeat: 2, DurationNs: 1e9,
			Throughput: &reports.Throughput{BytesPerSecond: 5e8, OperationsPerSecond: 1}, CPU: &reports.CPU{ClientSeconds: 1, ServerSeconds: 0.5}},
		{Stack: "s", Transport: "iwarp", Label: reports.LabelSoft, Workload: "hol", Op: "write", SizeBytes: mib, Depth: 1, QPs: 1, Repeat: 1, DurationNs: 1e9,
			HOL: &reports.HOL{Arm: "two-qp", BulkSizeBytes: mib, ProbeLoaded: reports.Latency{P99: 77}}},
	}}
	if err := doc.WriteFile(name); err != nil {
		t.Fatal(err)
	}
	m := measures{}
	if err := m.document(name); err != nil {
		t.Fatal(err)
	}
	m.bench("BenchmarkPerRequest/bare/single-2  \t 9 \t 12.0 ns/op\t 11.50 cpu-ns/request\t 0 B/op\nBenchmarkPerRequest/fifo/batch16-2 9 7 ns/op 7 cpu-ns/request\n")
	want := map[string]float64{"iwarp/rate/64 2": 5e8, "iwarp/cpu/64 2": 3, fmt.Sprintf("iwarp/two-qp/p99/%d 1", mib): 77, "bare/request 1": 11.5}
	got := map[string]float64{}
	for series, by := range m {
		for r, x := range by {
			got[fmt.Sprintf("%s %d", series, r)] = x
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
