package main

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rawRows reads a file of raw samples as any CSV reader does and counts the rows of
// each set of each result.
func rawRows(t *testing.T, path string) map[string]int64 {
	t.Helper()
	f := need(os.Open(path))(t)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		in = need(gzip.NewReader(f))(t)
	}
	rows := need(csv.NewReader(in).ReadAll())(t)
	if want := "result set thread offset_ns latency_ns service_ns"; strings.Join(rows[0], " ") != want {
		t.Fatalf("header %q, want %q", rows[0], want)
	}
	n := map[string]int64{}
	for _, r := range rows[1:] {
		n[r[0]+" "+r[1]]++
	}
	return n
}

// Every sample of a document is in one file, which the results name.
func TestRunWritesRawSamples(t *testing.T) {
	dir := t.TempDir()
	points := []string{"run", "--transport", "tcp,mem", "--op", "write", "-s", "64", "-n", "200"}
	for _, c := range []struct {
		args []string
		file string
		sets int // of samples
	}{
		// 2 of latency and 4 of probes
		{[]string{"--raw=" + filepath.Join(dir, "r.csv"), "--workload", "latency,throughput,hol", "--bulk-size", "64K",
			"--hol-arm", "same-qp", "--probe-interval", "50us"}, filepath.Join(dir, "r.csv"), 6},
		{[]string{"--raw=" + filepath.Join(dir, "r.csv.gz"), "--workload", "latency"},
			filepath.Join(dir, "r.csv.gz"), 2},
		{[]string{"--raw", "-o", filepath.Join(dir, "out"), "--workload", "latency"},
			filepath.Join(dir, "out", "samples.csv"), 2},
	} {
		d := measure(t, append(slices.Clone(points), c.args...)...)
		rows := rawRows(t, c.file)
		named := 0
		for i, res := range d.Results {
			for _, s := range res.RawSamples {
				named++
				if n := rows[fmt.Sprintf("%d %s", i, s.Set)]; n != s.Count || n != 200 || s.File != c.file ||
					s.Dropped != 0 {
					t.Errorf("%q: result %d says %+v, the file has %d rows", c.args, i, s, n)
				}
			}
		}
		if named != c.sets || len(rows) != c.sets {
			t.Errorf("%q: %d sets named and %d in the file, want %d", c.args, named, len(rows), c.sets)
		}
	}
}

// Samples of calls are there as all others, by the goroutine that called.
func TestRunWritesRawSamplesOfCalls(t *testing.T) {
	for _, args := range [][]string{
		{"--workload", "rpc", "-s", "64"},
		{"--workload", "kv", "--ycsb", "c", "--records", "200"},
		{"--workload", "tensor", "--tensor", "push", "-s", "4K"},
	} {
		file := filepath.Join(t.TempDir(), "r.csv")
		results := measure(t, append([]string{"run"}, append(args, "--transport", "grpc(tcp)", "--outstanding", "3", "-n",
			"90", "--raw="+file)...)...).Results
		rows := rawRows(t, file)
		if len(results) != 1 || len(results[0].RawSamples) != 1 || len(rows) != 1 {
			t.Fatalf("%q: results %+v, the file has %v", args, results, rows)
		}
		if s := results[0].RawSamples[0]; s.Count != 90 || s.File != file || rows["0 latency"] != 90 {
			t.Errorf("%q: says %+v, the file has %v", args, s, rows)
		}
	}
}

// A scenario has one file for all its runs; what does not fit is said.
func TestScenarioWritesRawSamples(t *testing.T) {
	file := scenarioIn(t, "version: 1\ndefaults: {transport: tcp, workload: latency, op: send, iters: 100}\n"+
		"runs: [{name: a, size: 64}, {name: b, size: 128}]\n")
	csv := filepath.Join(t.TempDir(), "r.csv")
	r := rdmaperf(t, "run", "--scenario", file, "--raw="+csv, "--raw-limit", "60")
	if r.code != 0 || !strings.Contains(r.stdout, "120 raw samples in") ||
		!strings.Contains(r.stdout, "80 samples above the limit of 60") {
		t.Errorf("exit %d, %q, %s", r.code, r.stderr, r.stdout)
	}
	if rows := rawRows(t, csv); rows["0 latency"] != 60 || rows["1 latency"] != 60 {
		t.Errorf("rows %v, want 60 of each result", rows)
	}
}
