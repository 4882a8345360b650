package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

// From a run to its page, and from the run's file to the same results on another.
func TestReportShowsWhatRunWrote(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	runs(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64,1K", "-n", "200", "-o", out)
	records := filepath.Join(dir, "conform.jsonl")
	line := `{"id":"ord/x","clause":"RFC 5040","level":"must","transport":"mem","verdict":"pass"}` + "\n"
	must(t, os.WriteFile(records, []byte(line), 0o644))
	page := filepath.Join(dir, "page.html")
	r := runs(t, "report", filepath.Join(out, "result.json"), "-o", page, "--conform", records)
	if r.stdout+r.stderr != "" {
		t.Errorf("report: stdout %q, stderr %q", r.stdout, r.stderr)
	}
	for _, name := range []string{filepath.Join("out", resultfile.PageFile), "page.html"} {
		text := contents(t, dir, name)
		contains(t, text, "<!doctype html>", "Latency send, 64 B", "not a network", "</html>")
		if strings.Contains(text, "ord/x") != (name == "page.html") {
			t.Errorf("%s: conformance in the wrong page", name)
		}
	}
	if r := runs(t, "report", filepath.Join(out, "result.json"), "-o", "-"); !strings.HasSuffix(r.stdout, "</html>\n") {
		t.Errorf("-o -: %d bytes on stdout", len(r.stdout))
	}
}

// largeDocument has n results, each altered by of.
func largeDocument(t testing.TB, n int, of func(r *reports.Result, i int)) string {
	t.Helper()
	rec := reports.NewRecorder()
	for i := range int64(20_000) {
		rec.Record(2000 + i*i%4000)
	}
	l := rec.Snapshot()
	d := &reports.Document{Schema: reports.SchemaID}
	for i := range n {
		r := reports.Result{Stack: "iwarp", Label: reports.LabelSoft, Workload: "latency", Op: "send", SizeBytes: 64,
			Depth: 1, QPs: 1, Operations: l.Count, DurationNs: 1e8, Verified: true, Latency: &l,
			Disturbance: &reports.Disturbance{Verdict: reports.VerdictQuiet, Taken: 0.01}}
		of(&r, i)
		d.Results = append(d.Results, r)
	}
	path := filepath.Join(t.TempDir(), "result.json")
	must(t, d.WriteFile(path))
	return path
}

// A report of 3,000 repeats and one of 10,000 results take 5 s at most on two CPUs, and 500 MB.
func BenchmarkReport(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
		of   func(r *reports.Result, i int)
	}{
		{"repeats", 3000, func(r *reports.Result, i int) { r.Repeat = i + 1 }},
		{"results", 10_000, func(r *reports.Result, i int) {
			r.Stack, r.Op, r.SizeBytes = fmt.Sprint("s", i/400), []string{"send", "write", "read", "write_imm"}[i/100%4],
				int64(1+i%100)
		}},
		{"empty", 16_000, func(r *reports.Result, i int) { *r = reports.Result{Stack: "iwarp", Workload: "latency"} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := largeDocument(b, c.n, c.of)
			page := filepath.Join(b.TempDir(), "page.html")
			for b.Loop() {
				var stderr bytes.Buffer
				if code := execute(b.Context(), []string{"report", path, "-o", page}, io.Discard, &stderr); code != 0 {
					b.Fatalf("exit %d: %s", code, &stderr)
				}
			}
		})
	}
}

// An interrupt ends a report at once, and what was there before stays.
func TestReportHeedsAnInterrupt(t *testing.T) {
	path := largeDocument(t, 1500, func(r *reports.Result, i int) { r.Repeat = i + 1 })
	page := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(page, []byte("old"), 0o644))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"report", path, "-o", page}, {"compare", path, path}} {
		if code := execute(ctx, args, io.Discard, io.Discard); code != reports.ExitInterrupted {
			t.Errorf("%s: exit %d, want %d", args[0], code, reports.ExitInterrupted)
		}
	}
	if b, err := os.ReadFile(page); err != nil || string(b) != "old" {
		t.Errorf("the page is %q, %v", b, err)
	}
}
