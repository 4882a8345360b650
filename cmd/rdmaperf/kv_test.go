package main

import (
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
	r := runs(t, "run", "--scenario", file, "--json", jsonFile)
	var got []string
	for _, res := range documentOf(t, jsonFile).Results {
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
	contains(t, r.stdout, "side by side: kv call", "depth 2, 1 connection", "depth 1, 1 connection",
		"store bbolt", "max scan", "a tensor each way")
	page := filepath.Join(dir, "r.html")
	runs(t, "report", jsonFile, "-o", page)
	contains(t, contents(t, dir, "r.html"), `id="kv"`)
}
