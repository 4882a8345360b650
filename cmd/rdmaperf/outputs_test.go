package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/signal"
	"path/filepath"
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
	b := need(os.ReadFile(filepath.Join(dir, "histograms", "latency-mem-send-64.hlog")))(t)
	got, err := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b)).NextIntervalHistogram()
	if err != nil || got == nil || got.Tag() != "mem/send/64" || !got.Equals(want) {
		t.Errorf("histogram %v, error %v, want the document's with tag mem/send/64", got, err)
	}
	for name, want := range map[string]string{
		"histograms/latency-mem-send-64.hgrm": "Percentile", "result.json": `"schema": "rdmaperf/v1"`, "report.html": "<svg",
		"text.txt":          "mem [mem, not a network]: latency send",
		"exports/bench.txt": "BenchmarkLatency/op=send/transport=mem/size=64", "exports/perftest.txt": " #bytes #iterations ",
		"exports/results.csv": "started,version,", "exports/metrics.prom": "rdmaperf_",
	} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: error %v, %d bytes, want %q in it", name, err, len(b), want)
		}
	}
}

func TestRunPrintsPerftestAndCSV(t *testing.T) {
	args := []string{"run", "--transport", "mem", "--op", "write", "-s", "64", "-n", "200"}
	r := rdmaperf(t, append(args, "--format", "perftest", "--report_gbits")...)
	if r.code != 0 || !strings.Contains(r.stdout, " t_stdev[usec]   99% percentile[usec] ") ||
		!strings.Contains(r.stdout, " BW average[Gb/sec] ") {
		t.Errorf("perftest: exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	r = rdmaperf(t, append(args, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
	if r.code != 0 || err != nil || len(rows) < 3 || rows[0][0] != "started" {
		t.Errorf("csv: exit %d, error %v, %d rows, want a header and a row for each figure", r.code, err, len(rows))
	}
}

// A missed threshold has its line and its code, and takes nothing from the results.
func TestFailIf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	args := []string{"run", "--transport", "mem", "--workload", "latency", "--op", "write", "-s", "64", "-n", "200",
		"--json", file, "--format", "csv"}
	r := rdmaperf(t, append(args, "--fail-if", "p99>60s", "--fail-if", "errors>0")...)
	if r.code != 0 || r.stderr != "" {
		t.Errorf("kept thresholds: exit %d, stderr %q", r.code, r.stderr)
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
	file := filepath.Join(dir, "file")
	full := filepath.Join(dir, "full")
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
		r := rdmaperf(t, append([]string{"run", "--transport", "mem", "-D", "20s"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, stderr %q, want %d and one line with %q", c.args, r.code, r.stderr, c.code, c.want)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%q: found after %v", c.args, took)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a mistyped path was made")
	}
	if got, err := os.ReadFile(filepath.Join(full, "result.json")); err != nil || string(got) != "{}" {
		t.Errorf("the other run's results are %q, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".rdmaperf-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	runs(t, append(aMoment, "-o", full, "--force")...)
}

func TestJSONToStdout(t *testing.T) {
	r := rdmaperf(t, append(aMoment, "--json", "-")...)
	if r.code != 0 || len(document(t, []byte(r.stdout)).Results) != 1 {
		t.Errorf("exit %d, stderr %q, stdout %q", r.code, r.stderr, r.stdout)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file named -")
	}
}

// Every run is saved and says where, unless told otherwise.
func TestRunsAreSaved(t *testing.T) {
	t.Setenv("RDMAPERF_SAVE", "")
	t.Chdir(t.TempDir())
	r := rdmaperf(t, aMoment...)
	results, _ := filepath.Glob("rdmaperf-results/2*/result.json")
	if r.code != 0 || len(results) != 1 || !strings.Contains(r.stderr, filepath.Dir(results[0])) {
		t.Fatalf("exit %d, stderr %q, saved %q", r.code, r.stderr, results)
	}
	files, _ := filepath.Glob("rdmaperf-results/2*/*")
	if len(files) != 3 {
		t.Errorf("saved: %q, want a document, a page and a text", files)
	}
	// latest leads to the last of them, and a report of all has each once.
	r = rdmaperf(t, aMoment...)
	results, _ = filepath.Glob("rdmaperf-results/2*/result.json")
	if to, err := os.Readlink("rdmaperf-results/latest"); r.code != 0 || len(results) != 2 ||
		to != filepath.Base(filepath.Dir(results[1])) {
		t.Errorf("exit %d, latest leads to %q, %v, of %q", r.code, to, err, results)
	}
	r = rdmaperf(t, append([]string{"report", "--format", "markdown", "-o", "-", "rdmaperf-results/latest/result.json"},
		results...)...)
	if r.code != 0 || strings.Count(r.stdout, "**Medians") != 2 {
		t.Errorf("report: exit %d, %s, want 2 runs: %s", r.code, r.stderr, r.stdout)
	}
	t.Chdir(t.TempDir())
	r = rdmaperf(t, append(aMoment, "--export", "csv")...)
	if csv, _ := filepath.Glob("rdmaperf-results/2*/exports/*"); r.code != 0 || len(csv) != 1 {
		t.Errorf("--export: exit %d, stderr %q, %q", r.code, r.stderr, csv)
	}
	if r := rdmaperf(t, append(aMoment, "--no-save")...); r.code != 0 || r.stderr != "" {
		t.Errorf("--no-save: exit %d, stderr %q", r.code, r.stderr)
	}
	// What measured nothing leaves nothing.
	if r := rdmaperf(t, "run", "127.0.0.1", "-p", "1", "--transport", "tcp", "-n", "10"); r.code != 5 {
		t.Errorf("nobody there: exit %d, %q", r.code, r.stderr)
	}
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
