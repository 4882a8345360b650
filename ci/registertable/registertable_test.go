package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// A bound is met by what equals it, and missed by what is on its wrong side; a repeat that
// ran slower changes no ratio.
func TestLinesAgainstBounds(t *testing.T) {
	for _, w := range rows(sets()) {
		if w.bound == 0 {
			continue
		}
		for off, want := range map[float64]targets.Verdict{0: targets.Pass, 0.01: targets.Pass, -0.01: targets.Fail} {
			x := w.bound * (1 + off)
			if w.less {
				x = w.bound * (1 - off)
			}
			m := measures{}
			for _, scale := range []float64{1, 4, 0.5} {
				if w.beside == "" {
					scale = 1
				}
				m.add(w.beside, 1024*scale)
				switch {
				case w.beside == "":
					m.add(w.series, x)
				case w.minus:
					m.add(w.series, 1024*scale+x)
				default:
					m.add(w.series, 1024*scale*x)
				}
			}
			for _, l := range m.lines(rows(sets()), nil, false) {
				if l.Name == w.name && l.Verdict != want {
					t.Errorf("%s at %v: %q, want %q", l.Name, l.Value, l.Verdict, want)
				}
			}
		}
	}
}

const document = `{"schema":"rdmaperf/v1","started":"2026-11-24T00:00:00Z","command":["rdmaperf"],"environment":{"go":"go1","kernel":"6","cpu":"c","cpus":2,"version":"v"},"results":[
{"stack":"pin","label":"soft","workload":"register","op":"repeated","size_bytes":1048576,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"register":{"arm":"none","pages":"base","offload":"none","threads":1,"register":{"p50":20000},"deregister":{"p50":6000}}},
{"stack":"pin","label":"soft","workload":"register","op":"repeated","size_bytes":1048576,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"register":{"arm":"cache","pages":"base","offload":"none","threads":1,"register":{"p50":50},"deregister":{"p50":5}}},
{"stack":"iwarp(crc)","transport":"iwarp","label":"soft","workload":"allreduce","op":"ring","size_bytes":65536,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"allreduce":{"ranks":2,"arm":"cache","buffers":"reused","offload":"none","eager_bytes":65536,"total":{"p50":80}}},
{"stack":"iwarp(crc)","transport":"iwarp","label":"soft","workload":"allreduce","op":"halving","size_bytes":65536,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"allreduce":{"ranks":2,"arm":"cache","buffers":"reused","offload":"none","eager_bytes":65536,"total":{"p50":40}}}
]}`

// First touch and second use are taken apart, of either arm.
func TestOnDemandPagesBecomeLines(t *testing.T) {
	text := document[:strings.Index(document, `"results":[`)] + `"results":[
{"stack":"v","label":"soft","workload":"register","op":"new","size_bytes":1048576,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"register":{"arm":"none","pages":"base","offload":"none","threads":1,"register":{"p50":900},"use":{"p50":40},"use_again":{"p50":20}}},
{"stack":"v","label":"soft","workload":"register","op":"new","size_bytes":1048576,"depth":1,"qps":1,"duration_ns":1,"operations":1,"errors":0,"verified":true,"register":{"arm":"odp","pages":"base","offload":"none","threads":1,"register":{"p50":100},"use":{"p50":60},"use_again":{"p50":30}}}]}`
	file := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m := measures{}
	if err := m.file(file); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"1M, on demand: first touch over warmed": 2, "1M, warmed: on demand over pinned": 1.5,
		"1M, first use: on demand over pinned": 1.5, "1M, register: none over odp": 9}
	for _, l := range m.lines(rows([]string{setODP}), nil, false) {
		if v, some := want[l.Name]; some && (l.Value != v || l.Verdict == targets.Fail) {
			t.Errorf("%s is %v (%s), want %v", l.Name, l.Value, l.Verdict, v)
		}
		delete(want, l.Name)
	}
	if len(want) > 0 {
		t.Errorf("no line of %v", want)
	}
}

// Documents and the lines of MPI become ratios, and of the algorithms the better counts.
func TestFilesBecomeLines(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"c.bench": "goos: linux\nBenchmarkAlive/mapping,watched-2   100   0 ns/op   3000 alloc-ns   4000 " +
			"free-ns\nBenchmarkAlive/system-calls-16  100   0 ns/op  2100 alloc-ns  2900 free-ns\nPASS\n",
		"a.json": document, "b.txt": "2 65536 reused 10 60 61.5\n2 65536 fresh 10 90 91\n"}
	m := measures{}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := m.file(file); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]float64{}
	for _, l := range m.lines(rows(sets()), nil, false) {
		if len(l.Values) > 0 {
			got[l.Name] = l.Value
		}
	}
	want := map[string]float64{"ns alloc, 100000 alive: a mapping, above its system call": 900,
		"ns free, 100000 alive: a mapping, above its system call": 1100,
		"register 1M, none over cache":                            400,
		"all-reduce of 64K, 2 ranks, MPI over iwarp":              1.5}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("lines %v", got)
	}
	var out strings.Builder
	targets.WriteLines(&out, m.lines(rows([]string{setMPI}), nil, false))
	if !strings.Contains(out.String(), "not measured") || !strings.Contains(out.String(), "pass") {
		t.Errorf("table\n%s", out.String())
	}
}

func TestWrongInputIsRefused(t *testing.T) {
	if err := (measures{}).mpi("2 65536 reused ten\n"); err == nil {
		t.Error("a line that is none was read")
	}
	for _, text := range []string{"", "PASS\n", "BenchmarkAlive/arena-2 100 x ns/op\n"} {
		if err := (measures{}).alive(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, args := range [][]string{{}, {"-only", "all", "x"}, {"-show", "none", "x"}} {
		if err := run(args); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
	if err := run([]string{"/nonexistent.json"}); err == nil {
		t.Error("a file that is not there was read")
	}
}
