package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
)

// measured runs once and writes the document, changed by alter, to a file.
func measured(t *testing.T) func(name string, alter func(d *reports.Document)) string {
	t.Helper()
	dir := t.TempDir()
	d := measure(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send,write", "-s", "64", "-n", "300")
	return func(name string, alter func(d *reports.Document)) string {
		d := d
		alter(d)
		path := filepath.Join(dir, name)
		must(t, d.WriteFile(path))
		return path
	}
}

func TestCompare(t *testing.T) {
	write := measured(t)
	slower := func(percent float64) func(d *reports.Document) {
		return func(d *reports.Document) {
			for i := range d.Results {
				l := d.Results[i].Latency
				l.P50, l.P99, l.Mean = 1000*(1+percent/100), 2000*(1+percent/100), 1100*(1+percent/100)
			}
		}
	}
	disturb := func(taken float64) func(d *reports.Document) {
		return func(d *reports.Document) {
			slower(0)(d)
			for i := range d.Results {
				d.Results[i].Disturbance = &reports.Disturbance{}
				if d.Results[i].Disturbance.Verdict = reports.VerdictQuiet; taken > 0 && i == 0 {
					d.Results[i].Disturbance = &reports.Disturbance{Verdict: reports.VerdictDisturbed, Taken: taken,
						Reasons: []string{"client's threads waited for a CPU"}}
				}
			}
		}
	}
	noisy, quiet := write("noisy.json", disturb(0.3)), write("quiet.json", disturb(0))
	old, same, slow := write("old.json", slower(0)), write("same.json", slower(9)), write("slow.json", slower(20))
	other := write("other.json", func(d *reports.Document) {
		slower(20)(d)
		d.Environment.CPU = "Abacus 1"
		d.Results[1].Polling = reports.PollingEvent
	})
	apart := write("apart.json", func(d *reports.Document) {
		for i := range d.Results {
			d.Results[i].SizeBytes = 65
		}
	})
	broken := filepath.Join(t.TempDir(), "broken.json")
	must(t, os.WriteFile(broken, []byte(`{"schema":"other/v9"}`), 0o644))
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr []string // parts, in any order
	}{
		{[]string{old, same, "--fail-if", "p99>+10%"}, 0, []string{"mem latency send 64", "+9.00%",
			"no test: one sample each"}, nil},
		{[]string{old, slow, "--fail-if", "p99>+10%"}, 0, []string{"+20.00%"},
			[]string{"undecided: p99 2.000us to 2.400us, +20.00%, limit: fail if >+10% (mem latency send 64, 2 of 2 points; ",
				"no test finds fewer than 4 repeats a side significant"}},
		{[]string{old, slow, "--medians", "--fail-if", "p99>+10%", "--fail-if", "p50>1s"}, 3, []string{"+20.00%"},
			[]string{"failed: p99 2.000us to 2.400us, +20.00%, limit: fail if >+10% (mem latency send 64, 2 of 2 points; " +
				"no test: one sample each)\n", "rdmaperf: check thresholds: 1 of 2 conditions failed\n"}},
		{[]string{old, other}, 2, nil, []string{"not alike: cpu: old ", "new Abacus 1\n",
			"not alike: mem latency write 64: polling: old busy, new event\n", "the runs are not alike; try --force"}},
		{[]string{old, other, "--force", "--medians", "--fail-if", "p99>+10%"}, 3,
			[]string{"not alike: cpu", "+20.00%"}, []string{"failed: p99 "}},
		{[]string{old, apart}, 2, nil, []string{"no point is in both runs"}},
		{[]string{}, 2, nil, []string{"want one or two result documents"}},
		{[]string{old, "no-such-file"}, 2, nil, []string{"no-such-file: no such file"}},
		{[]string{old, broken}, 2, nil, []string{"broken.json", `schema is "other/v9"`}},
		{[]string{quiet, quiet, "--fail-if", "disturbed"}, 0, []string{"+0.00%"}, nil},
		{[]string{quiet, noisy, "--fail-if", "disturbed"}, 3, []string{"new: ! noise in 1 of 2 measurements"},
			[]string{"! noise in 1 of 2 measurements", "check thresholds: some measurements were noisy"}},
		{[]string{quiet, noisy}, 0, []string{"new: ! noise in 1 of 2 measurements"}, nil},
		{[]string{old, same, "--format", "xml"}, 2, nil, []string{`"xml"`}},
		{[]string{old, same, "--fail-if", "p99>+10"}, 2, nil, []string{"only a change"}},
	} {
		r := rdmaperf(t, append([]string{"compare"}, c.args...)...)
		if r.code != c.code || c.stdout == nil && r.stdout != "" || c.stderr == nil && r.stderr != "" {
			t.Errorf("%q: exit %d, want %d\nstdout %s\nstderr %s", c.args, r.code, c.code, r.stdout, r.stderr)
		}
		contains(t, r.stdout, c.stdout...)
		contains(t, r.stderr, c.stderr...)
	}
	r := rdmaperf(t, "compare", old, slow, "--format", "json", "--medians", "--fail-if", "p50>+1%")
	var got reports.Comparison
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != 3 || len(got.Points) != 2 ||
		len(got.Missed) != 1 {
		t.Errorf("json: exit %d, error %v, %d points, missed %q", r.code, err, len(got.Points), got.Missed)
	}
}

// Two directories of one document each time a build had its turn.
func TestCompareDirectories(t *testing.T) {
	write := measured(t)
	root := t.TempDir()
	dir := func(name string, p50s ...float64) string {
		path := filepath.Join(root, name)
		must(t, os.Mkdir(path, 0o755))
		for i, p50 := range p50s {
			file := write("turn.json", func(d *reports.Document) {
				for k := range d.Results {
					d.Results[k].Latency.P50, d.Results[k].Disturbance = p50, nil // of a quiet machine
				}
			})
			must(t, os.Rename(file, filepath.Join(path, string(rune('a'+i))+".json")))
		}
		return path
	}
	base, head := dir("base[1]", 100, 101, 102, 103, 104), dir("head", 120, 121, 122, 123, 124)
	r := ends(t, reports.ExitThreshold, "compare", base, head, "--format", "markdown", "--fail-if", "p50>+10%")
	contains(t, r.stdout, "| p50 | 102ns | 122ns | **+19.61%** | significant, p=0.008 n=5 |")
	fails(t, reports.ExitUsage, "no *.json in it", "compare", dir("empty"), head)
	foreign := write("foreign.json", func(d *reports.Document) { d.Environment.Version = "v9" })
	must(t, os.Rename(foreign, filepath.Join(head, "z.json")))
	fails(t, reports.ExitUsage, "v9", "compare", base, head)
}

// Two programs take turns, and what they measure is compared run by run.
func TestCompareRunsProgramsInTurns(t *testing.T) {
	self := need(os.Executable())(t)
	r := runs(t, "compare", "--run", self, self, "--rounds", "2", "--", "--transport", "mem", "--workload", "latency",
		"--op", "send", "-s", "64", "-n", "50", "--warmup", "none")
	contains(t, r.stdout, "mem, A", "mem, B", "64 B send", "2 rounds")
	if strings.Count(r.stderr, "round=") != 4 {
		t.Errorf("stderr %q", r.stderr)
	}
	for condition, code := range map[string]int{"p50<1ns": 3, "p50<1000s": 0} {
		r := ends(t, code, "compare", "--run", self, self, "--rounds", "1", "--expect", condition, "--format", "markdown",
			"--", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50")
		contains(t, r.stdout, "| point | figure |")
	}
	for _, args := range [][]string{{self}, {self, self, self}, {"/nonexistent", self}, {self, "/nonexistent"},
		{self, self, "--rounds", "0"}, {self, self, "--format", "xml"}, {self, self, "--", "--workload", "none"},
		{"true", self}} {
		r := rdmaperf(t, append([]string{"compare", "--run"}, args...)...)
		if r.code != 2 || strings.Count(r.stderr, "\n") > 3 || strings.Contains(r.stderr, "goroutine") {
			t.Errorf("%q: exit code %d, want 2, stderr %q", args, r.code, r.stderr)
		}
	}
}

// A baseline is found by its name, holds each stack's newest results, and belongs to the machine that it was saved on.
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
	r := runs(t, "compare", "before")
	contains(t, r.stdout, "mem latency send 64", "sched(")
	if strings.Contains(r.stdout, "only in") {
		t.Errorf("stdout %s", r.stdout)
	}
	run("--transport", "mem", "--save", "after", "--no-save")
	contains(t, runs(t, "compare", "before", "after").stdout, "only in the old run: sched(")
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

// The same broken file gives the same exit code wherever it is read: by report, by compare
// as a file, in a directory and as a named baseline.
func TestABrokenFileHasOneExitCode(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	t.Setenv("RDMAPERF_SAVE", "")
	t.Chdir(t.TempDir())
	base := need(resultfile.NewBaseline("broken"))(t)
	for name, text := range map[string]string{"empty": "", "no JSON": "\x7fELF", "cut off": `{"schema":`,
		"another schema": `{"schema":"other/v9"}`, "an array": "[]", "two documents": `{"schema":"other/v9"}{}`,
		"records": `{"id":"a/b","transport":"mem","verdict":"pass"}` + "\n{}\n"} {
		file := filepath.Join("dir", "x.json")
		for _, f := range []string{file, filepath.Join(base.Dir(), "x.json")} {
			must(t, os.MkdirAll(filepath.Dir(f), 0o755))
			must(t, os.WriteFile(f, []byte(text), 0o644))
		}
		for _, args := range [][]string{{"report", "-o", "-", file}, {"report", "-o", "page.html", file},
			{"compare", file, file}, {"compare", "dir", "dir"}, {"compare", "broken", "broken"}} {
			if r := rdmaperf(t, args...); r.code != reports.ExitUsage || r.stderr == "" || r.stdout != "" {
				t.Errorf("%s: %q: exit %d, stdout %q, stderr %q, want exit %d and a line", name, args, r.code, r.stdout,
					r.stderr, reports.ExitUsage)
			}
		}
	}
	if _, err := os.Stat("page.html"); err == nil {
		t.Error("a page was written from nothing")
	}
}
