package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

// A baseline is found by its name, holds each stack's newest results, and belongs to the
// machine that it was saved on.
func TestBaselinesAreNamed(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("RDMAPERF_SAVE", "")
	t.Chdir(t.TempDir())
	run := func(args ...string) {
		t.Helper()
		if r := rdmaperf(t, append([]string{"run", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50",
			"--loop", "plain"}, args...)...); r.code != 0 {
			t.Fatalf("%q: exit %d, %s", args, r.code, r.stderr)
		}
	}
	run("--transport", "mem", "--save", "before", "--no-save")
	run("--transport", "sched+mem", "--save", "before", "--no-save") // another stack: a file of its own
	if r := rdmaperf(t, "compare", "before"); r.code != reports.ExitUsage ||
		!strings.Contains(r.stderr, "no run is saved") {
		t.Errorf("nothing to compare with: exit %d, %s", r.code, r.stderr)
	}
	run("--transport", "mem,sched+mem")
	r := rdmaperf(t, "compare", "before")
	if r.code != 0 || !strings.Contains(r.stdout, "mem latency send 64") || !strings.Contains(r.stdout, "sched(") ||
		strings.Contains(r.stdout, "only in") {
		t.Errorf("exit %d, stdout %s\nstderr %s", r.code, r.stdout, r.stderr)
	}
	run("--transport", "mem", "--save", "after", "--no-save")
	if r := rdmaperf(t, "compare", "before", "after"); r.code != 0 ||
		!strings.Contains(r.stdout, "only in the old run: sched(") {
		t.Errorf("two baselines: exit %d, stdout %s\nstderr %s", r.code, r.stdout, r.stderr)
	}
	files, _ := filepath.Glob(filepath.Join(data, "rdmaperf", "baselines", "before", "*", "*.json"))
	if len(files) != 2 {
		t.Errorf("files of the baseline: %q, want one of each stack", files)
	}
	// The same home directory on another machine.
	machine := filepath.Dir(files[0])
	if err := os.Rename(machine, filepath.Join(filepath.Dir(machine), "0123456789ab")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"before": "saved on another machine",
		"never": "never: no such file, and no baseline of that name"} {
		if r := rdmaperf(t, "compare", name, "after"); r.code != reports.ExitUsage ||
			!strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d, %s, want %q", name, r.code, r.stderr, want)
		}
	}
	for _, name := range []string{"../x", "", ".x", "a/b", strings.Repeat("x", 101)} {
		if _, err := resultfile.NewBaseline(name); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	if r := rdmaperf(t, append(aMoment, "--save", "../x")...); r.code != reports.ExitUsage ||
		!strings.Contains(r.stderr, "--save") {
		t.Errorf("--save ../x: exit %d, %s", r.code, r.stderr)
	}
	// A directory that cannot be made is found before anything is measured.
	file := filepath.Join(data, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", file)
	if r := rdmaperf(t, append(aMoment, "--save", "x")...); r.code != reports.ExitFailed ||
		!strings.Contains(r.stderr, "open --save") {
		t.Errorf("unwritable: exit %d, %s", r.code, r.stderr)
	}
}
