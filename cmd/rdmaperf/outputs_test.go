package main

import (
	"encoding/csv"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The directory of a run holds the histograms of its document.
func TestOutputDirectoryHoldsHistograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	d := measure(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "500",
		"--output", dir)
	want := need(d.Results[0].Latency.Histogram())(t)
	log := strings.NewReader(contents(t, dir, "histograms/latency-mem-send-64.hlog"))
	got, err := hdrhistogram.NewHistogramLogReader(log).NextIntervalHistogram()
	if err != nil || got == nil || got.Tag() != "mem/send/64" || !got.Equals(want) {
		t.Errorf("histogram %v, error %v, want the document's with tag mem/send/64", got, err)
	}
	for name, want := range map[string]string{
		"histograms/latency-mem-send-64.hgrm": "Percentile", "result.json": `"schema": "rdmaperf/v1"`, "report.html": "<svg",
		"text.txt":          "mem [mem, not a network]: latency send",
		"exports/bench.txt": "BenchmarkLatency/op=send/transport=mem/size=64", "exports/perftest.txt": " #bytes #iterations ",
		"exports/results.csv": "started,version,", "exports/metrics.prom": "rdmaperf_",
	} {
		contains(t, contents(t, dir, name), want)
	}
}

// Each format is printed alone, too, and --report_gbits is for all.
func TestRunPrintsEachFormat(t *testing.T) {
	args := []string{"run", "--transport", "mem", "--op", "write", "-s", "64", "-n", "200", "--report_gbits", "--format"}
	contains(t, runs(t, append(args, "perftest")...).stdout, " t_stdev[usec]   99% percentile[usec] ",
		" BW average[Gb/sec] ")
	contains(t, runs(t, append(args, "text")...).stdout, "Gb/s")
	if bench := runs(t, append(args, "bench")...).stdout; !regexp.MustCompile(
		`(?m)^BenchmarkLatency/op=write/\S+\s+200 .* ns/op`).MatchString(bench) {
		t.Errorf("bench: %s", bench)
	}
	rows := need(csv.NewReader(strings.NewReader(runs(t, append(args, "csv")...).stdout)).ReadAll())(t)
	if len(rows) < 3 || rows[0][0] != "started" {
		t.Errorf("csv: %d rows, want a header and a row for each figure", len(rows))
	}
	d := measure(t, append(aMoment, "--warmup", "none")...)
	if len(d.Results) != 1 || d.Results[0].Parameters["warmup_operations"] != nil {
		t.Errorf("json: %+v", d)
	}
}

// A missed threshold has its line and its code, and takes nothing from the results.
func TestFailIf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	args := []string{"run", "--transport", "mem", "--workload", "latency", "--op", "write", "-s", "64", "-n", "200",
		"--json", file, "--format", "csv"}
	r := runs(t, append(args, "--fail-if", "p99>60s", "--fail-if", "errors>0")...)
	if r.stderr != "" {
		t.Errorf("kept thresholds: stderr %q", r.stderr)
	}
	os.Remove(file)
	r = rdmaperf(t, append(args, "--fail-if", "p99>60s", "--fail-if", "p50<59s", "--expect", "p99<1ns")...)
	lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
	if r.code != 3 || len(lines) != 3 || !strings.HasPrefix(lines[0], "failed: p50 ") ||
		!strings.HasSuffix(lines[0], ", limit: fail if <59s (mem latency write 64, 1 of 1 result)") ||
		!strings.HasSuffix(lines[1], ", expected <1ns (mem latency write 64, 1 of 1 result)") ||
		lines[2] != "rdmaperf: check thresholds: 2 of 3 conditions failed" {
		t.Errorf("exit %d, stderr %q", r.code, r.stderr)
	}
	if !strings.HasPrefix(r.stdout, "started,") || !strings.Contains(r.stdout, ",p50,time,ns,less,") {
		t.Errorf("stdout %q, want a header and the figures", r.stdout)
	}
	if d := documentOf(t, file); len(d.Results) != 1 || d.Error != nil {
		t.Errorf("%d results, error %+v, want one and none", len(d.Results), d.Error)
	}
}

var aMoment = []string{"run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50"}

// A destination that cannot be written to is found before anything is measured.
func TestDestinationsAreTriedFirst(t *testing.T) {
	dir := t.TempDir()
	file, full := filepath.Join(dir, "file"), filepath.Join(dir, "full")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, os.Mkdir(full, 0o755))
	must(t, os.WriteFile(filepath.Join(full, "result.json"), []byte("{}"), 0o644))
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "open --json: ", []string{"--json", filepath.Join(dir, "none", "x.json")}},
		{1, "is a directory", []string{"--json", dir}},
		{1, "open --output: ", []string{"-o", filepath.Join(file, "x")}},
		{1, "open --output: ", []string{"-o", filepath.Join(dir, "nowhere", "x")}},
		{1, "no such file", []string{"--cpu-profile", filepath.Join(dir, "nowhere", "x"), "--no-save"}},
		{1, "open --metrics-textfile: ", []string{"--metrics-textfile", filepath.Join(dir, "none", "x.prom")}},
		{2, "has results of another run", []string{"-o", full}},
		{2, "perftest's -o", []string{"-o", "4"}},
		{2, "rdmaperf perftest ib_write_bw --output=bandwidth", []string{"--output=bandwidth"}},
		{2, "exclude each other", []string{"-o", dir, "--no-save"}},
		{2, `"pdf": want bench`, []string{"--export", "pdf"}},
		{2, "where --format text goes", []string{"--json", "-", "--format", "text"}},
	} {
		begun := time.Now()
		failsInALine(t, c.code, c.want, append([]string{"run", "--transport", "mem", "-D", "20s"}, c.args...)...)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%q: found after %v", c.args, took)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a mistyped path was made")
	}
	if got := contents(t, full, "result.json"); got != "{}" {
		t.Errorf("the other run's results are %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".rdmaperf-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	runs(t, append(aMoment, "-o", full, "--force")...)
}

func TestJSONToStdout(t *testing.T) {
	r := runs(t, append(aMoment, "--json", "-")...)
	if len(document(t, []byte(r.stdout)).Results) != 1 {
		t.Errorf("stdout %q", r.stdout)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file named -")
	}
}

// Every run is saved and says where, unless told otherwise.
func TestRunsAreSaved(t *testing.T) {
	t.Setenv("RDMAPERF_SAVE", "")
	t.Chdir(t.TempDir())
	r := runs(t, aMoment...)
	results, _ := filepath.Glob("rdmaperf-results/2*/result.json")
	if len(results) != 1 || !strings.Contains(r.stderr, filepath.Dir(results[0])) {
		t.Fatalf("stderr %q, saved %q", r.stderr, results)
	}
	if files, _ := filepath.Glob("rdmaperf-results/2*/*"); len(files) != 3 {
		t.Errorf("saved: %q, want a document, a page and a text", files)
	}
	// latest leads to the last of them, and a report of all has each once.
	runs(t, aMoment...)
	results, _ = filepath.Glob("rdmaperf-results/2*/result.json")
	if to, err := os.Readlink("rdmaperf-results/latest"); len(results) != 2 ||
		to != filepath.Base(filepath.Dir(results[1])) {
		t.Errorf("latest leads to %q, %v, of %q", to, err, results)
	}
	r = runs(t, append([]string{"report", "--format", "markdown", "-o", "-", "rdmaperf-results/latest/result.json"},
		results...)...)
	if strings.Count(r.stdout, "**Medians") != 2 {
		t.Errorf("report: want 2 runs: %s", r.stdout)
	}
	t.Chdir(t.TempDir())
	runs(t, append(aMoment, "--export", "csv")...)
	if csv, _ := filepath.Glob("rdmaperf-results/2*/exports/*"); len(csv) != 1 {
		t.Errorf("--export: %q", csv)
	}
	if r := runs(t, append(aMoment, "--no-save")...); r.stderr != "" {
		t.Errorf("--no-save: stderr %q", r.stderr)
	}
	// What measured nothing leaves nothing.
	ends(t, 5, "run", "127.0.0.1", "-p", "1", "--transport", "tcp", "-n", "10")
	if all, _ := filepath.Glob("rdmaperf-results/2*"); len(all) != 1 {
		t.Errorf("saved: %q, want one", all)
	}
}

// A closed terminal and a reader that went away cost no finished point.
func TestHangupAndClosedStdoutKeepWhatIsFinished(t *testing.T) {
	dir := t.TempDir()
	// A signal that this process handles is none that the child ignores, also under nohup(1).
	taken := make(chan os.Signal, 1)
	signal.Notify(taken, syscall.SIGHUP)
	defer signal.Stop(taken)
	hung := start(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "-D", "20s",
		"-o", filepath.Join(dir, "hung"))
	hung.spins()
	hung.cmd.Process.Signal(syscall.SIGHUP)
	if code := hung.wait(20 * time.Second); code != 128+int(syscall.SIGHUP) {
		t.Errorf("SIGHUP: exit %d, %s", code, hung.errs.String())
	}
	if d := documentOf(t, filepath.Join(dir, "hung", "result.json")); len(d.Results) != 1 || d.Error == nil {
		t.Errorf("SIGHUP: %d results, error %v", len(d.Results), d.Error)
	}

	read, write, err := os.Pipe()
	must(t, err)
	read.Close()
	self := need(os.Executable())(t)
	p, err := os.StartProcess(self, append([]string{self}, append(aMoment, "-o", filepath.Join(dir, "broken"))...),
		&os.ProcAttr{Files: []*os.File{nil, write, nil}})
	write.Close()
	must(t, err)
	state, err := p.Wait()
	if err != nil || state.ExitCode() != 1 {
		t.Errorf("closed stdout: %v, %v", state, err)
	}
	if d := documentOf(t, filepath.Join(dir, "broken", "result.json")); len(d.Results) != 1 || d.Error != nil {
		t.Errorf("closed stdout: %d results, error %v", len(d.Results), d.Error)
	}
}

// What is no file of bounded size is refused at once.
func TestReportReadsRegularFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	for _, name := range []string{"/dev/zero", fifo} { // nobody writes to the FIFO
		for _, args := range [][]string{{"report", name, "-o", "-"}, {"compare", name, name}} {
			fails(t, 2, name+": not a regular file", args...)
		}
	}
}
