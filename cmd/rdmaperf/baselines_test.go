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
		runs(t, append([]string{"run", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50",
			"--loop", "plain"}, args...)...)
	}
	run("--transport", "mem", "--save", "before", "--no-save")
	run("--transport", "sched+mem", "--save", "before", "--no-save") // another stack: a file of its own
	fails(t, reports.ExitUsage, "no run is saved", "compare", "before")
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
	must(t, os.Rename(machine, filepath.Join(filepath.Dir(machine), "0123456789ab")))
	for name, want := range map[string]string{"before": "saved on another machine",
		"never": "never: no such file, and no baseline of that name"} {
		fails(t, reports.ExitUsage, want, "compare", name, "after")
	}
	for _, name := range []string{"../x", "", ".x", "a/b", strings.Repeat("x", 101)} {
		if _, err := resultfile.NewBaseline(name); err == nil {
			t.Errorf("name %q is taken", name)
		}
	}
	fails(t, reports.ExitUsage, "--save", append(aMoment, "--save", "../x")...)
	// A directory that cannot be made is found before anything is measured.
	file := filepath.Join(data, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	t.Setenv("XDG_DATA_HOME", file)
	fails(t, reports.ExitFailed, "open --save", append(aMoment, "--save", "x")...)
}
