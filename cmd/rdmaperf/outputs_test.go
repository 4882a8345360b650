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
	r := rdmaperf(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "500", "--output", dir, "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	d := document(t, []byte(r.stdout))
	want, err := d.Results[0].Latency.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "latency-mem-send-64.hlog"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b)).NextIntervalHistogram()
	if err != nil || got == nil || got.Tag() != "mem/send/64" || !got.Equals(want) {
		t.Errorf("histogram %v, error %v, want the document's with tag mem/send/64", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "latency-mem-send-64.hgrm")); err != nil {
		t.Error(err)
	}
}

func TestRunPrintsPerftestAndCSV(t *testing.T) {
	args := []string{"run", "--transport", "mem", "--op", "write", "-s", "64", "-n", "200"}
	r := rdmaperf(t, append(args, "--format", "perftest", "--report_gbits")...)
	if r.code != 0 || !strings.Contains(r.stdout, " t_stdev[usec]   99% percentile[usec] ") || !strings.Contains(r.stdout, " BW average[Gb/sec] ") {
		t.Errorf("perftest: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	r = rdmaperf(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if r.code != 0 || err != nil || len(rows) != 3 {
		t.Errorf("csv: exit %d, error %v, %d rows, want a header and two results", r.code, err, len(rows))
	}
}
