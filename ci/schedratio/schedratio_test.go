package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		line    targets.Line
		code    int
		verdict string
	}{
		{targets.Line{Name: "met", Verdict: targets.Pass}, reports.ExitOK, ""},
		{targets.Line{Name: "of no target"}, reports.ExitOK, ""},
		{targets.Line{Name: "missed", Verdict: targets.Fail}, reports.ExitThreshold, "target missed: missed"},
		{targets.Line{Name: "absent", Verdict: targets.NotMeasured}, reports.ExitFailed, "not measured: absent"},
	} {
		err := targets.OfLines([]targets.Line{{Name: "first", Verdict: targets.Pass}, c.line},
			func(l *targets.Line) (string, targets.Verdict) { return l.Name, l.Verdict })
		if reports.Code(err) != c.code || c.verdict != "" && !strings.Contains(err.Error(), c.verdict) {
			t.Errorf("%s: %v, exit %d, want %d", c.line.Name, err, reports.Code(err), c.code)
		}
	}
}

// A bound is met by what equals it, and missed by what is on its wrong side.
func TestLinesAgainstBounds(t *testing.T) {
	for _, w := range rows("iwarp", 16*mib, sets()) {
		if w.Bound == 0 {
			continue
		}
		for off, want := range map[float64]targets.Verdict{0: targets.Pass, 0.01: targets.Pass, -0.01: targets.Fail} {
			x := w.Bound + off*w.Bound
			if w.Less {
				x = w.Bound - off*w.Bound
			}
			m := measures{}
			for _, scale := range []float64{1, 4, 0.5} { // a repeat that ran slower changes no ratio
				m.add(w.Beside, 1024*scale)
				if w.Minus {
					m.add(w.Series, 1024*scale+x)
				} else {
					m.add(w.Series, 1024*scale*x)
				}
			}
			for _, l := range m.lines(rows("iwarp", 16*mib, sets())) {
				if l.Name == w.Name && l.Verdict != want {
					t.Errorf("%s at %v: %q, want %q", w.Name, l.Value, l.Verdict, want)
				}
				if l.Series != w.Series && l.Series != w.Beside && l.Verdict != targets.NotMeasured {
					t.Errorf("%s: %q without a measurement", l.Name, l.Verdict)
				}
			}
		}
	}
}

func TestFiguresComeOutOfTheirFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "d.json")
	doc := &reports.Document{Results: []reports.Result{
		{Stack: "s", Transport: "iwarp", Label: reports.LabelSoft, Workload: "throughput", Op: "write", SizeBytes: 64,
			Depth: 1, QPs: 1, Repeat: 2, DurationNs: 1e9,
			Throughput: &reports.Throughput{BytesPerSecond: 5e8, OperationsPerSecond: 1},
			CPU:        &reports.CPU{ClientSeconds: 1, ServerSeconds: 0.5, MachineSeconds: 2}},
		{Stack: "s", Transport: "iwarp", Label: reports.LabelSoft, Workload: "hol", Op: "write", SizeBytes: mib,
			Depth: 1, QPs: 1, Repeat: 1, DurationNs: 1e9,
			Others: reports.Members{{Name: "hol",
				Value: json.RawMessage(`{"arm":"two-qp","bulk_size_bytes":1048576,"probe_loaded":{"p99":77}}`)}}},
	}}
	if err := doc.WriteFile(name); err != nil {
		t.Fatal(err)
	}
	m := measures{}
	if err := m.document(name); err != nil {
		t.Fatal(err)
	}
	m.bench("BenchmarkPerRequest/bare/single-2  \t 9 \t 12.0 ns/op\t 11.50 cpu-ns/request\t 0 "+
		"B/op\nBenchmarkPerRequest/fifo/batch16-2 9 7 ns/op 7 cpu-ns/request\n"+
		"BenchmarkAlone/64K-2 \t 1\t 80 ns/op\t 2.5e+09 bare-B/s\t 0.5 bare-cpu-s/GB\t 3000000000 sched-B/s\t 0.25 "+
		"sched-cpu-s/GB\nBenchmarkAlone/16M 1 7 bare-B/s\nBenchmarkAlone/nocrc/1M-2 1 6e+09 sched-B/s 0.125 "+
		"bare-cpu-s/GB\n"+
		"BenchmarkAlone/64-2 1 4e8 bare-B/s\nBenchmarkAlone/verbs/8M-2 1 9 sched-B/s 3 "+
		"bare-machine-s/GB\nBenchmarkAlone/verbs/8M-2 1 8 sched-B/s\n", "verbs:rxe0")
	want := measures{"iwarp/rate/64": {4e8}, "sched+verbs:rxe0/rate/8388608": {9, 8}, "verbs:rxe0/machine/8388608": {3},
		"iwarp/cpu/64": {3}, "iwarp/machine/64": {4}, fmt.Sprintf("iwarp/two-qp/write/p99/%d", mib): {77},
		"bare/request":     {11.5},
		"iwarp/rate/65536": {2.5e9}, "iwarp/cpu/65536": {0.5}, "sched+iwarp/rate/65536": {3e9},
		"sched+iwarp/cpu/65536": {0.25}, "iwarp/rate/16777216": {7},
		"sched+iwarp(nocrc)/rate/1048576": {6e9}, "iwarp(nocrc)/cpu/1048576": {0.125}}
	if fmt.Sprint(m) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", m, want)
	}
	for _, l := range m.lines([]row{{Unit: 1000, Series: fmt.Sprintf("iwarp/two-qp/write/p99/%d", mib)}}) {
		if l.Value != 0.077 || l.Verdict != targets.None {
			t.Errorf("a series by itself: %+v, want 77 ns in us", l)
		}
	}
}

// A table is of one stack, and of what was measured: what was not asked for is not
// called missing.
func TestSetsOfAStack(t *testing.T) {
	dir := t.TempDir()
	bench := filepath.Join(dir, "bench")
	if err := os.WriteFile(bench,
		[]byte("BenchmarkPerRequest/bare/single 9 7 cpu-ns/request\nBenchmarkPerRequest/fifo/single 9 9 "+
			"cpu-ns/request\nBenchmarkPerRequest/strict/single 9 9 cpu-ns/request\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for line, code := range map[string]int{
		"-only request -bench " + bench:       reports.ExitOK,
		"-only hol,request -bench " + bench:   reports.ExitFailed,
		"-only bogus -bench " + bench:         reports.ExitUsage,
		"-only hol":                           reports.ExitUsage,
		"-only hol " + dir + "/absent":        reports.ExitFailed,
		"-only request -bench " + dir + "/no": reports.ExitFailed,
	} {
		if err := run(strings.Fields(line)); reports.Code(err) != code {
			t.Errorf("%s: %v, exit %d, want %d", line, err, reports.Code(err), code)
		}
	}
	for line, code := range map[string]int{"": reports.ExitThreshold, "-show request": reports.ExitOK,
		"-show bogus": reports.ExitUsage} {
		if err := os.WriteFile(bench,
			[]byte("BenchmarkPerRequest/bare/single 9 7 cpu-ns/request\nBenchmarkPerRequest/fifo/single 9 99 "+
				"cpu-ns/request\nBenchmarkPerRequest/strict/single 9 9 cpu-ns/request\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := run(strings.Fields(line + " -only request -bench " + bench)); reports.Code(err) != code {
			t.Errorf("%q beyond its bound: %v, exit %d, want %d", line, err, reports.Code(err), code)
		}
	}
	for _, w := range rows("verbs:rxe0", 8*mib, []string{setHOL, setBulk, setSends}) {
		if !strings.Contains(w.Series, "verbs:rxe0/") || w.Beside != "" && !strings.Contains(w.Beside, "verbs:rxe0/") {
			t.Errorf("%s: %s beside %s", w.Name, w.Series, w.Beside)
		}
	}
}
