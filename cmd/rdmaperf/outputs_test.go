package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The directory of a run holds the histograms of its document.
func TestOutputDirectoryHoldsHistograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	d := measure(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "500",
		"--output", dir)
	want := need(d.Results[0].Latency.Histogram())(t)
	b := need(os.ReadFile(filepath.Join(dir, "histograms", "latency-mem-send-64.hlog")))(t)
	got, err := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b)).NextIntervalHistogram()
	if err != nil || got == nil || got.Tag() != "mem/send/64" || !got.Equals(want) {
		t.Errorf("histogram %v, error %v, want the document's with tag mem/send/64", got, err)
	}
	for name, want := range map[string]string{
		"histograms/latency-mem-send-64.hgrm": "Percentile", "result.json": `"schema": "rdmaperf/v1"`, "report.html": "<svg",
		"text.txt":          "mem [mem, not a network]: latency send",
		"exports/bench.txt": "BenchmarkLatency/op=send/transport=mem/size=64", "exports/perftest.txt": " #bytes #iterations ",
		"exports/results.csv": "started,version,", "exports/metrics.prom": "rdmaperf_",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: error %v, %d bytes, want %q in it", name, err, len(b), want)
		}
	}
}

func TestRunPrintsPerftestAndCSV(t *testing.T) {
	args := []string{"run", "--transport", "mem", "--op", "write", "-s", "64", "-n", "200"}
	r := rdmaperf(t, append(args, "--format", "perftest", "--report_gbits")...)
	if r.code != 0 || !strings.Contains(r.stdout, " t_stdev[usec]   99% percentile[usec] ") ||
		!strings.Contains(r.stdout, " BW average[Gb/sec] ") {
		t.Errorf("perftest: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	r = rdmaperf(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if r.code != 0 || err != nil || len(rows) < 3 || rows[0][0] != "started" {
		t.Errorf("csv: exit %d, error %v, %d rows, want a header and a row for each figure", r.code, err, len(rows))
	}
}

// A missed threshold has its line and its code, and takes nothing from the results.
func TestFailIf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	args := []string{"run", "--transport", "mem", "--workload", "latency", "--op", "write", "-s", "64", "-n", "200",
		"--json", file, "--format", "csv"}
	r := rdmaperf(t, append(args, "--fail-if", "p99>60s", "--fail-if", "errors>0")...)
	if r.code != 0 || r.stderr != "" {
		t.Errorf("kept thresholds: exit %d, stderr %q", r.code, r.stderr)
	}
	os.Remove(file)
	r = rdmaperf(t, append(args, "--fail-if", "p99>60s", "--fail-if", "p50<59s", "--expect", "p99<1ns")...)
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if r.code != 3 || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], "failed: p50 ") ||
		!strings.HasSuffix(lines[0], ", limit: fail if <59s (mem latency write 64, 1 of 1 result)") ||
		!strings.HasSuffix(lines[1], ", expected <1ns (mem latency write 64, 1 of 1 result)") ||
		lines[2] != "rdmaperf: check thresholds: 2 of 3 conditions failed" {
		t.Errorf("exit %d, stderr %q", r.code, r.stderr)
	}
	if !strings.HasPrefix(r.stdout, "started,") || !strings.Contains(r.stdout, ",p50,time,ns,less,") {
		t.Errorf("stdout %q, want a header and the figures", r.stdout)
	}
	if d := documentOf(t, file); len(d.Results) != 1 || d.Error != nil {
		t.Errorf("%d results, error %+v, want one and none", len(d.Results), d.Error)
	}
}
