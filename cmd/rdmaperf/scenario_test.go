package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

const exampleScenario = "testdata/scenario/example.yaml"

// scenarioIn writes a scenario into a file of the test.
func scenarioIn(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// points are the results of a document with the run that each is of.
func points(doc *reports.Document) []string {
	var all []string
	for _, r := range doc.Results {
		all = append(all, fmt.Sprintf("%v: %s %s %d x%d", r.Parameters["run"], r.Workload, r.Op, r.SizeBytes, r.Operations))
	}
	return all
}

func TestScenarioTakesAllRunsIntoOneDocument(t *testing.T) {
	doc := measure(t, "run", "--scenario", exampleScenario)
	want := []string{
		"small messages: latency send 64 x50", "small messages: latency write 64 x50", "under load: latency send 64 x50",
		"large messages: throughput write 4096 x50", "large messages: throughput write 65536 x50",
	}
	equal(t, points(doc), want)
	for _, res := range doc.Results {
		if res.Parameters["scenario"] != "example" {
			t.Errorf("a result of scenario %v", res.Parameters["scenario"])
		}
	}
	if res := doc.Results[2]; res.Rate != 20000 || res.Arrivals != "poisson" || res.Parameters["seed"] != 7. {
		t.Errorf("rate %v, arrivals %q, seed %v: the second run asked for 20000, poisson, 7", res.Rate, res.Arrivals,
			res.Parameters["seed"])
	}
	equal(t, []string{fmt.Sprint(doc.Results[4].Parameters["options"])}, []string{
		"map[iters:50 op:write size:4K,64K transport:mem tx-depth:4 warmup:none workload:throughput]"})
}

func TestScenarioLevelsWinInOrder(t *testing.T) {
	file := scenarioIn(t, `version: 1
defaults: {transport: mem, workload: latency, op: send, size: [64, 128], duration: 1h}
runs:
  - {name: a, iters: 20}
  - {iters: 20, size: 32}
`)
	for _, c := range []struct {
		args []string
		want []string
	}{
		// An option that excludes another takes its place.
		{nil, []string{"a: latency send 64 x20", "a: latency send 128 x20", "2: latency send 32 x20"}},
		{[]string{"-n", "10", "-s", "16,8"}, []string{"a: latency send 16 x10", "a: latency send 8 x10",
			"2: latency send 16 x10", "2: latency send 8 x10"}},
	} {
		equal(t, points(measure(t, append([]string{"run", "--scenario", file}, c.args...)...)), c.want)
	}
	fails(t, 2, "exclude each other", "run", "--scenario", file, "--op", "write", "-D", "1ms", "-s", "64", "-n", "5")
}

// The command line's HOST wins over the file's.
func TestScenarioHost(t *testing.T) {
	_, port := serveHere(t)
	file := scenarioIn(t, "version: 1\nhost: 127.0.0.1\ndefaults: {transport: tcp, op: send, size: 64, iters: 20, "+
		"timeout: 5s, port: "+port+"}\nruns: [{name: a, workload: latency}]\n")
	if n := len(measure(t, "run", "--scenario", file).Results); n != 1 {
		t.Errorf("%d results", n)
	}
	contains(t, ends(t, 5, "run", "--scenario", file, "no.such.host.invalid").stderr, "no.such.host.invalid", "run a: ")
}

// What cannot run here leaves the rest; what goes wrong ends it; the worst counts.
func TestScenarioExitCodes(t *testing.T) {
	const good, absent, gone = "{name: good, transport: mem}", "{name: absent, transport: \"verbs:absent0\"}",
		"{name: gone, transport: tcp, iters: 1, port: 1}"
	for _, c := range []struct {
		name    string
		runs    []string
		args    []string
		code    int
		results int
		stderr  string
	}{
		{"done", []string{good}, nil, 0, 1, ""},
		{"not run goes on", []string{absent, good}, nil, 77, 1, "rdmaperf: run absent: "},
		{"threshold", []string{good}, []string{"--fail-if", "p50>1ns"}, 3, 1, "limit: fail if >1ns"},
		{"threshold beside not run", []string{absent, good}, []string{"--fail-if", "p50>1ns"}, 3, 1,
			"limit: fail if >1ns"},
		{"threshold kept beside not run", []string{absent, good}, []string{"--fail-if", "p50>1h"}, 2, -1, "unit"},
		{"nothing ran", []string{absent}, []string{"--fail-if", "p50>1s"}, 77, 0, "failed: no result has a p50, limit: fail if >1s"},
		{"an error ends it", []string{absent, gone, "{name: after, transport: tcp}"},
			[]string{"127.0.0.1", "--timeout", "200ms"}, 5, 0, "rdmaperf: run gone: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := scenarioIn(t, "version: 1\ndefaults: {workload: latency, op: send, size: 64, iters: 20}\nruns:\n - "+strings.Join(c.runs, "\n - ")+"\n")
			r := ends(t, c.code, append([]string{"run", "--scenario", file, "--format", "json"}, c.args...)...)
			contains(t, r.stderr, c.stderr)
			if c.results < 0 {
				return
			}
			doc := document(t, []byte(r.stdout))
			if len(doc.Results) != c.results {
				t.Errorf("%d results, want %d", len(doc.Results), c.results)
			}
			if failed := c.code != 0 && c.code != 3; failed != (doc.Error != nil) &&
				c.name != "threshold beside not run" {
				t.Errorf("error %+v with exit %d", doc.Error, c.code)
			}
		})
	}
}

// Every mistake is found before anything is measured: one line with its place.
func TestScenarioMistakes(t *testing.T) {
	const head = "version: 1\nruns:\n"
	for _, c := range []struct {
		name, text string
		line       int
		want       string
	}{
		{"empty", "", 1, "empty"},
		{"no version", "runs: [{name: a}]\n", 1, "no version"},
		{"another version", "version: 2\nruns: [{name: a}]\n", 1, "want 1"},
		{"version as text", "runs: [{name: a}]\nversion: '1'\n", 2, "want 1"},
		{"no runs", "version: 1\n", 1, "no runs"},
		{"no list of runs", "version: 1\nruns: {a: b}\n", 2, "want a list"},
		{"empty list of runs", "version: 1\nruns: []\n", 2, "empty"},
		{"empty run", head + " - name: a\n - {}\n", 4, "an empty run"},
		{"null run", head + " -\n", 3, "want a map"},
		{"run is text", head + " - run\n", 3, "want a map"},
		{"list at the top", "- version: 1\n", 1, "want a map"},
		{"unknown key at the top", "version: 1\nrun: []\n", 2, `unknown key "run"`},
		{"key twice at the top", "version: 1\nversion: 1\nruns: [{name: a}]\n", 2, "already defined"},
		{"not YAML", "version: 1\nruns: [\n", 2, "did not find"},
		{"two documents", head + " - name: a\n---\nversion: 1\n", 4, "second YAML document"},
		{"null defaults", "version: 1\ndefaults:\nruns: [{name: a}]\n", 2, "want a map"},
		{"unknown flag", head + " - name: a\n   sizes: 64\n", 4, `unknown flag "sizes"`},
		{"short flag", head + " - s: 64\n", 3, `unknown flag "s"`},
		{"flag twice", head + " - size: 64\n   op: send\n   size: 65\n", 5, "first in line 3"},
		{"name twice", head + " - name: a\n - name: a\n", 4, "line 3"},
		{"name with a line break", head + " - name: \"a\\nb\"\n", 3, "one line of text"},
		{"host inside", head + " - host: h\n", 3, "top level"},
		{"empty host", "version: 1\nhost: ''\nruns: [{name: a}]\n", 2, "one line"},
		{"text for a number", head + " - qp: four\n", 3, `want a whole number, not "four"`},
		{"fraction for a whole number", head + " - iters: 1.5\n", 3, "want a whole number"},
		{"too large a number", head + " - probe-priority: 256\n", 3, "probe-priority"},
		{"number for a switch", head + " - all: 1\n", 3, "want true or false"},
		{"text for a switch", head + " - all: 'true'\n", 3, "want true or false"},
		{"switch for a text", head + " - duration: true\n", 3, "want a text or a number"},
		{"text for a rate", head + " - rate: fast\n", 3, "want a number"},
		{"null value", head + " - size:\n", 3, "want a text"},
		{"map value", head + " - size: {a: b}\n", 3, "want a text"},
		{"nested list", head + " - size: [[64]]\n", 3, "want a text"},
		{"empty list", head + " - size: []\n", 3, "list is empty"},
		{"list for a number", head + " - iters: [1, 2]\n", 3, "not a list"},
		{"alias", head + " - name: &a x\n   size: *a\n", 4, "alias"},
		{"merge key", "version: 1\ndefaults: &d {size: 64}\nruns:\n - name: a\n   <<: *d\n", 5, `unknown flag "<<"`},
		{"mistake in a default that runs replace", "version: 1\ndefaults: {iters: many}\nruns: [{iters: 5}]\n", 2,
			"whole number"},
		// What the flags themselves find has the line of its run.
		{"size 0", head + " - name: ok\n - name: b\n   size: 0\n", 4, "run b: read --size"},
		{"exclusive flags", head + " - iters: 5\n   duration: 1s\n", 3, "exclude each other"},
		{"unknown transport", head + " - transport: pigeon\n", 3, "pigeon"},
		{"mistake of the last transport",
			head + " - {transport: mem, iters: 1}\n - {transport: tcp, op: send, size: 2G, iters: 1}\n", 4,
			"limit"},
		{"no server for mem", "version: 1\nhost: h\nruns: [{transport: mem}]\n", 3, "in-process only"},
		{"unknown operation", head + " - op: [send, teleport]\n", 3, "teleport"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := scenarioIn(t, c.text)
			r := failsInALine(t, 2, c.want, "run", "--scenario", file)
			contains(t, r.stderr, fmt.Sprintf("read scenario: %s:%d: ", file, c.line))
			if strings.Contains(r.stderr, "run.scenario") {
				t.Errorf("%q names a type of the program", r.stderr)
			}
		})
	}
	long := scenarioIn(t, "version: 1\nruns: [{name: a}]\n#"+strings.Repeat("x", 1<<20))
	fails(t, 2, "more than", "run", "--scenario", long)
}

// The file that help shows is one that works.
func TestScenarioInHelp(t *testing.T) {
	help := newRunCommand().Long
	from, to := strings.Index(help, "  version: 1"), strings.Index(help, "\n\nFlags on the command line")
	if from < 0 || to < from {
		t.Fatalf("no scenario in the help:\n%s", help)
	}
	d := measure(t, "run", "--scenario", scenarioIn(t, help[from:to]), "--transport", "mem", "-n", "20")
	equal(t, points(d), []string{"small: latency send 64 x20", "large: throughput write 1048576 x20"})
}

// Runs of the same point keep their results and files apart.
func TestScenarioRunsOfOnePoint(t *testing.T) {
	dir := t.TempDir()
	file := scenarioIn(t, "version: 1\ndefaults: {transport: mem, workload: latency, op: send, size: 64, iters: "+
		"20}\nruns: [{name: a}, {name: b, verify: none}]\n")
	for _, format := range []string{"json", "text", "bench", "perftest", "csv"} {
		r := runs(t, "run", "--scenario", file, "--format", format, "-o", filepath.Join(dir, format),
			"--metrics-textfile", filepath.Join(dir, format+".prom"))
		if r.stderr != "" {
			t.Fatalf("%s: %q", format, r.stderr)
		}
		if format != "json" {
			continue
		}
		doc := document(t, []byte(r.stdout))
		equal(t, points(doc), []string{"a: latency send 64 x20", "b: latency send 64 x20"})
		if !doc.Results[0].Verified || doc.Results[1].Verified {
			t.Error("verify is not that of its run")
		}
	}
	raw, err := filepath.Glob(filepath.Join(dir, "json", "histograms", "*.hgrm"))
	if err != nil || len(raw) != 4 { // raw and corrected of both
		t.Errorf("histograms %q, %v: want 4", raw, err)
	}
}
