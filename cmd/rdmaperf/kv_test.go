package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
)

// Two mixes side by side on two carriers, in one scenario file with tensors.
func TestRunMixesAndTensors(t *testing.T) {
	dir := t.TempDir()
	file := scenarioIn(t, `version: 1
defaults: {transport: ["grpc(unix)", "grpc(fused)+iwarp"], warmup: 3}
runs:
 - {name: store, ycsb: [b, E], records: 200, fields: 2, field-bytes: 50, max-scan: 5, outstanding: 2, iters: 60}
 - {name: tensors, tensor: exchange, size: [1K, 100K], iters: 5}
`)
	jsonFile := filepath.Join(dir, "r.json")
	r := rdmaperf(t, "run", "--scenario", file, "--json", jsonFile)
	if r.code != 0 {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	b, err := os.ReadFile(jsonFile)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, res := range document(t, b).Results {
		switch {
		case kv.Of(&res) != nil && res.Workload == "kv" && kv.Of(&res).FieldBytes == 50 &&
			kv.Of(&res).Records == 200 && res.SizeBytes == 100 && res.Depth == 2 &&
			len(kv.Of(&res).Operations) > 0:
			got = append(got, res.Transport+" "+kv.Of(&res).Mix)
		case callsresults.Of(&res) != nil && res.Workload == "tensor" && callsresults.Of(&res).Call == "exchange" &&
			res.Depth == 1:
			got = append(got, res.Transport+" tensor")
		default:
			t.Errorf("result %+v", res)
		}
	}
	slices.Sort(got)
	want := "grpc(fused)+iwarp b, grpc(fused)+iwarp e, grpc(fused)+iwarp tensor, grpc(fused)+iwarp tensor, " +
		"grpc(unix) b, grpc(unix) e, grpc(unix) tensor, grpc(unix) tensor"
	if strings.Join(got, ", ") != want {
		t.Errorf("results %q, want %q", got, want)
	}
	for _, text := range []string{"side by side: kv call", "depth 2, 1 connection", "depth 1, 1 connection",
		"store bbolt", "max scan", "a tensor each way"} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("no %q in:\n%s", text, r.stdout)
		}
	}
	page := filepath.Join(dir, "r.html")
	if r := rdmaperf(t, "report", jsonFile, "-o", page); r.code != 0 {
		t.Fatalf("report: exit %d, %q", r.code, r.stderr)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(html), `id="kv"`) {
		t.Error("the page has no section on the mixes")
	}
}

// What makes no sense for these workloads is refused, and the flag is named.
func TestRunRefusesMixesAndTensors(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--ycsb g", 2, `read --ycsb: "g": want a, b, c, d, e, f or all`},
		{"--tensor shove", 2, `read --tensor: "shove": want push, pull, exchange`},
		{"--ycsb a --records 0", 2, "0 records"},
		{"--ycsb a --field-bytes 3", 2, "fields of 3 bytes"},
		{"--ycsb a --max-scan 0", 2, "scans of 0"},
		{"--workload kv -s 64", 2, "read --size: records"},
		{"--workload kv --op write", 2, "read --op: write"},
		{"--workload tensor --op send", 2, "read --op: send"},
		{"--workload kv --threads 2", 2, "read --threads: "},
		{"--workload rpc --ycsb a", 2, "for --workload kv"},
		{"--workload latency --tensor push", 2, "for --workload tensor"},
		{"--ycsb a --transport mem", 2, "no operation call"},
		{"--workload tensor --polling event", 2, "polling"},
	} {
		args := append([]string{"run", "--transport", "grpc(unix)"}, strings.Fields(c.args)...)
		if strings.Contains(c.args, "--transport") {
			args = append([]string{"run"}, strings.Fields(c.args)...)
		}
		if r := rdmaperf(t, args...); r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("run %s: exit %d, stderr %q, want %d and %q", c.args, r.code, r.stderr, c.code, c.want)
		}
	}
}
