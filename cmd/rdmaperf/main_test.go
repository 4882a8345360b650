package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// asCommand makes the test binary behave as rdmaperf. It is set for every
// process the tests start, and by them for their own server children.
const asCommand = "RDMAPERF_TEST_AS_COMMAND"

// withWakeup makes such a process measure how the machine wakes. The others do not wait for it.
const withWakeup = "RDMAPERF_TEST_WITH_WAKEUP"

func TestMain(m *testing.M) {
	if os.Getenv(withTestWorkloads) != "" {
		listTestWorkloads()
	}
	// A fuzzing worker inherits the variable too, but has flags of the test.
	run.Measuring = "" // tests measure beside each other
	if os.Getenv(asCommand) != "" && len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		if os.Getenv(withWakeup) == "" {
			run.MeasureWakeup = nil
		}
		os.Exit(mainWithSignals())
	}
	os.Setenv(asCommand, "1")
	run.MeasureWakeup = nil                      // TestRunSaysHowTheMachineWakes gives it back
	os.Setenv("RDMAPERF_SAVE", "none")           // TestRunsAreSaved takes it away
	os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // whose tests these are has no say
	leaktest.Main(m)
}

// ran is a finished command line.
type ran struct {
	code           int
	stdout, stderr string
}

// quickly has a run warm up for a few operations when its test does not ask for more: a
// thousand, or 200 ms, before each of some hundred points tell a test nothing.
func quickly(args []string) []string {
	if len(args) == 0 || args[0] != "run" || slices.Contains(args, "--warmup") || slices.Contains(args, "--scenario") {
		return args
	}
	return append([]string{"run", "--warmup", "20"}, args[1:]...)
}

// ends is a command line that has to end with a code.
func ends(t testing.TB, code int, args ...string) ran {
	t.Helper()
	r := rdmaperf(t, args...)
	if r.code != code {
		t.Fatalf("%q: exit %d, want %d\n%s%s", args, r.code, code, r.stdout, r.stderr)
	}
	return r
}

// runs is a command line that has to end with 0.
func runs(t testing.TB, args ...string) ran {
	t.Helper()
	return ends(t, 0, args...)
}

// fails is a command line that has to end with a code, and with some words on stderr.
func fails(t testing.TB, code int, says string, args ...string) {
	t.Helper()
	if r := rdmaperf(t, args...); r.code != code || !strings.Contains(r.stderr, says) {
		t.Errorf("%q: exit %d, %s, want %d and %q", args, r.code, r.stderr, code, says)
	}
}

// failsInALine is fails with nothing on stdout and one line on stderr.
func failsInALine(t testing.TB, code int, says string, args ...string) ran {
	t.Helper()
	r := rdmaperf(t, args...)
	if r.code != code || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, says) {
		t.Errorf("%q: exit %d, %q, %q, want %d and one line with %q", args, r.code, r.stdout, r.stderr, code, says)
	}
	return r
}

// measure is the document of a run that has to end with 0.
func measure(t testing.TB, args ...string) *reports.Document {
	t.Helper()
	return document(t, []byte(runs(t, append(slices.Clone(args), "--format", "json")...).stdout))
}

// inAllFormats is measure of n results without a word on stderr, and the directory where they are in every format.
func inAllFormats(t testing.TB, n int, args ...string) (d *reports.Document, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "out")
	r := runs(t, append(slices.Clone(args), "--format", "json", "-o", dir)...)
	d = document(t, []byte(r.stdout))
	if r.stderr != "" || len(d.Results) != n {
		t.Fatalf("%q: %d results, want %d, stderr %q", args, len(d.Results), n, r.stderr)
	}
	return d, dir
}

// contents reads a file of a directory of results.
func contents(t testing.TB, dir, name string) string {
	t.Helper()
	return string(need(os.ReadFile(filepath.Join(dir, name)))(t))
}

// equal compares a list of results, each in words.
func equal(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: results %q, want %q", t.Name(), got, want)
	}
}

// contains finds every one of the words in a text.
func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s: no %q in:\n%.4000s", t.Name(), w, text)
		}
	}
}

// rdmaperf runs a command line in this process; server children are processes.
func rdmaperf(t testing.TB, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := execute(ctx, quickly(args), &out, &errs)
	if ctx.Err() != nil {
		t.Fatalf("rdmaperf %q did not end in time\n%s", args, errs.String())
	}
	return ran{code, out.String(), errs.String()}
}

// freePort is a TCP port that is free a moment later, most often.
func freePort(t testing.TB) string {
	t.Helper()
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// process is rdmaperf as a process of its own.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  bytes.Buffer
	errs bytes.Buffer
	done chan struct{}
}

func start(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(need(os.Executable())(t), quickly(args)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	must(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return p
}

// wait returns the exit code, -1 for a death by signal.
func (p *process) wait(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		p.t.Fatalf("%q did not end within %v", p.cmd.Args, limit)
		return 0
	}
}

// stat is what proc_pid_stat(5) says of a process, from field 3, its state, on; empty for none.
func stat(pid int) []string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// childrenOf lists the processes that a process started and that have not ended.
func childrenOf(parent int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if f := stat(pid); len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// spins waits until p has used a second of processor time. Only a measuring worker
// does that; waiting by the clock would break on a busy machine.
func (p *process) spins() {
	p.t.Helper()
	eventually(p.t, "the run measures", func() bool {
		f := stat(p.cmd.Process.Pid)
		if len(f) < 13 {
			return false
		}
		user, _ := strconv.Atoi(f[11]) // utime and stime, in ticks of 10 ms
		system, _ := strconv.Atoi(f[12])
		return user+system >= 100
	})
}

// eventually waits for a condition of another process.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// alive tells whether a process exists and is no zombie.
func alive(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && f[0] != "Z"
}

// must ends the test with an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}
