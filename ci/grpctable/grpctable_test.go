package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// full is one repeat in which every target is just met.
func full() values {
	v := values{}
	for _, w := range rows() {
		at := w.set + "/" + w.arm + "/" + w.figure
		switch {
		case w.reference != "" && w.bound != 0:
			// Both references are 1000, and the tightest of the bounds holds.
			v[w.set+"/"+w.reference+"/"+w.figure] = 1000
			v[at] = 1000 * w.bound
		case v[at] == 0 && w.bound != 0:
			v[at] = w.bound
		case v[at] == 0:
			v[at] = 1000
		}
		if w.reference != "" && v[w.set+"/"+w.reference+"/"+w.figure] == 0 {
			v[w.set+"/"+w.reference+"/"+w.figure] = 1000
		}
	}
	return v
}

func code(err error) int { return reports.Code(err) }

func TestVerdicts(t *testing.T) {
	if got := code(build(map[int]values{1: full()}, "").outcome()); got != 0 {
		t.Fatalf("everything met: exit %d: %v", got, build(map[int]values{1: full()}, "").outcome())
	}
	for _, w := range rows() {
		at := w.set + "/" + w.arm + "/" + w.figure
		v := full()
		if w.bound != 0 {
			v[at] *= 0.99
			if less(w.figure) {
				v[at] *= 1.03
			}
			if got := code(build(map[int]values{1: v}, "").outcome()); got != reports.ExitThreshold {
				t.Errorf("%s missed: exit %d", at, got)
			}
			if got := code(build(map[int]values{1: full(), 2: v, 3: full()}, "").outcome()); got != 0 {
				t.Errorf("%s missed in one of three repeats: exit %d", at, got)
			}
		}
		delete(v, at)
		if got := code(build(map[int]values{1: v}, "").outcome()); got != reports.ExitFailed {
			t.Errorf("%s not measured: exit %d", at, got)
		}
	}
	one := build(map[int]values{1: full()}, "large")
	for _, l := range one.Lines {
		if l.Set != "large" {
			t.Errorf("set %s in a table of large", l.Set)
		}
	}
}

func TestDocuments(t *testing.T) {
	dir := t.TempDir()
	result := func(mean float64) reports.Result {
		return reports.Result{Stack: "grpc(tcp)", Transport: "grpc(tcp)", Label: reports.LabelSoft, Workload: "rpc",
			Op: "call", SizeBytes: 64, Depth: 1, QPs: 1,
			DurationNs: 1e9, Operations: 1000, Verified: true,
			Others:     reports.Members{{Name: "rpc", Value: json.RawMessage(`{"call":"unary","form":"tcp"}`)}},
			Latency:    &reports.Latency{Count: 1000, Mean: mean, P99: 3 * mean},
			Throughput: &reports.Throughput{OperationsPerSecond: 1e9 / mean}}
	}
	put := func(name string, change func(*reports.Document)) {
		d := reports.Document{Schema: reports.SchemaID, Results: []reports.Result{result(1000)}}
		change(&d)
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("2.small.json", func(*reports.Document) {})
	put("2.sweep.json", func(d *reports.Document) { d.Results[0].QPs = 16 })
	got, err := readDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]float64{"small/grpc(tcp)/mean": 1000, "small/grpc(tcp)/p99": 3000,
		"small/grpc(tcp)/rate": 1e6, "sweep/grpc(tcp)/16/rate": 1e6} {
		if got[2][at] != want {
			t.Errorf("%s is %v, want %v", at, got[2][at], want)
		}
	}
	var text bytes.Buffer
	if err := build(got, "small").writeText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "1000000 call/s") ||
		!strings.Contains(text.String(), string(targets.NotMeasured)) {
		t.Errorf("table:\n%s", text.String())
	}
	for name, change := range map[string]func(*reports.Document){
		"failed calls": func(d *reports.Document) { d.Results[0].Errors = 1 },
		"not verified": func(d *reports.Document) { d.Results[0].Verified = false },
		"ended early":  func(d *reports.Document) { d.Error = &reports.RunError{Message: "gone"} },
	} {
		put("1.small.json", change)
		if _, err := readDir(dir); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := readDir(t.TempDir()); err == nil {
		t.Error("an empty directory is a table")
	}
	var e *reports.ExitError
	if err := run([]string{"-dir", dir, "more"}); !errors.As(err, &e) || e.Code != reports.ExitUsage {
		t.Errorf("a word too many: %v", err)
	}
}
