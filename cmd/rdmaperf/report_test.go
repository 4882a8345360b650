package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
)

// From a run to its page, and from the run's file to the same results on another.
func TestReportShowsWhatRunWrote(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	runs(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64,1K", "-n",
		"200", "-o", out)
	records := filepath.Join(dir, "conform.jsonl")
	line := `{"id":"ord/x","clause":"RFC 5040","level":"must","transport":"mem","verdict":"pass"}` + "\n"
	must(t, os.WriteFile(records, []byte(line), 0o644))
	page := filepath.Join(dir, "page.html")
	if r := rdmaperf(t, "report", filepath.Join(out, "result.json"), "-o", page, "--conform", records); r.code != 0 ||
		r.stdout+r.stderr != "" {
		t.Fatalf("report: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	for _, name := range []string{filepath.Join(out, resultfile.PageFile), page} {
		b := need(os.ReadFile(name))(t)
		contains(t, string(b), "<!doctype html>", "Latency send, 64 B", "not a network", "</html>")
		if strings.Contains(string(b), "ord/x") != (name == page) {
			t.Errorf("%s: conformance in the wrong page", filepath.Base(name))
		}
	}
	if r := rdmaperf(t, "report", filepath.Join(out, "result.json"), "-o", "-"); r.code != 0 ||
		!strings.HasSuffix(r.stdout, "</html>\n") {
		t.Errorf("-o -: exit %d, %d bytes on stdout", r.code, len(r.stdout))
	}
}
