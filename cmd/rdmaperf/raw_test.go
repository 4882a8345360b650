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
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
	points := []string{"run", "--transport", "tcp,mem", "--op", "write", "-s", "64", "-n", "200", "--format", "json"}
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
		r := rdmaperf(t, append(slices.Clone(points), c.args...)...)
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("%q: exit %d, stderr %q", c.args, r.code, r.stderr)
		}
		rows := rawRows(t, c.file)
		named := 0
		for i, res := range document(t, []byte(r.stdout)).Results {
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
		r := rdmaperf(t, append([]string{"run"}, append(args, "--transport", "grpc(tcp)", "--outstanding", "3", "-n",
			"90", "--format", "json", "--raw="+file)...)...)
		if r.code != 0 || r.stderr != "" {
			t.Fatalf("%q: exit %d, stderr %q", args, r.code, r.stderr)
		}
		rows := rawRows(t, file)
		results := document(t, []byte(r.stdout)).Results
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
	dir := t.TempDir()
	file := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(file,
		[]byte("version: 1\ndefaults: {transport: tcp, workload: latency, op: send, iters: 100}\nruns: [{name: a, "+
			"size: 64}, {name: b, size: 128}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "r.csv")
	r := rdmaperf(t, "run", "--scenario", file, "--raw="+csv, "--raw-limit", "60")
	if r.code != 0 || !strings.Contains(r.stdout, "120 raw samples in") ||
		!strings.Contains(r.stdout, "80 samples above the limit of 60") {
		t.Errorf("exit %d, %q, %s", r.code, r.stderr, r.stdout)
	}
	if rows := rawRows(t, csv); rows["0 latency"] != 60 || rows["1 latency"] != 60 {
		t.Errorf("rows %v, want 60 of each result", rows)
	}
}

func TestRawMistakes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"run --raw", 2, "--output DIR, or --raw=FILE"},
		{"run --raw samples.csv", 2, "--raw=samples.csv"},
		{"run --raw=/nowhere/at/all/x.csv -n 1", 1, "/nowhere/at/all/x.csv"},
		{"run --raw=x --raw-limit 0", 2, "--raw-limit"},
		{"run --raw=x --raw-limit 99999999", 2, "want 1 to"},
	} {
		if r := rdmaperf(t, strings.Fields(c.args)...); r.code != c.code || !strings.Contains(r.stderr, c.want) ||
			strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%s: exit %d, stderr %q, want %d and %q", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
}
