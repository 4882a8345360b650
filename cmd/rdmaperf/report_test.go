package main

import (
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
	if r := rdmaperf(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64,1K", "-n",
		"200", "-o", out); r.code != 0 {
		t.Fatalf("run: exit %d, stderr %q", r.code, r.stderr)
	}
	records := filepath.Join(dir, "conform.jsonl")
	line := `{"id":"ord/x","clause":"RFC 5040","level":"must","transport":"mem","verdict":"pass"}` + "\n"
	if err := os.WriteFile(records, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.html")
	if r := rdmaperf(t, "report", filepath.Join(out, "result.json"), "-o", page, "--conform", records); r.code != 0 ||
		r.stdout+r.stderr != "" {
		t.Fatalf("report: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	for _, name := range []string{filepath.Join(out, resultfile.PageFile), page} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<!doctype html>", "Latency send, 64 B", "not a network", "</html>"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s lacks %q", filepath.Base(name), want)
			}
		}
		if strings.Contains(string(b), "ord/x") != (name == page) {
			t.Errorf("%s: conformance in the wrong page", filepath.Base(name))
		}
	}
	if r := rdmaperf(t, "report", filepath.Join(out, "result.json"), "-o", "-"); r.code != 0 ||
		!strings.HasSuffix(r.stdout, "</html>\n") {
		t.Errorf("-o -: exit %d, %d bytes on stdout", r.code, len(r.stdout))
	}
}

func TestReportRefusesWhatIsNoDocument(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other.json")
	if err := os.WriteFile(other, []byte(`{"schema":"rdmaperf/v9"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.html")
	records := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(records, []byte(`{"id":"a/b","transport":"mem","verdict":"pass"}`+"\n{}\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"report"}, {"report", other, "-o", page},
		{"report", filepath.Join(dir, "absent.json"), "-o", page},
		{"report", records, "-o", page}, {"report", records, "--format", "pdf", "-o", page}} {
		if r := rdmaperf(t, args...); r.code != reports.ExitUsage || r.stderr == "" {
			t.Errorf("%q: exit %d, stderr %q, want exit %d and a line", args, r.code, r.stderr, reports.ExitUsage)
		}
	}
	if _, err := os.Stat(page); err == nil {
		t.Error("a page was written from nothing")
	}
}
