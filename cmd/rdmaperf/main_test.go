package main

import (
	"bytes"
	"context"
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
)

// asCommand makes the test binary behave as rdmaperf. It is set for every
// process the tests start, and by them for their own server children.
const asCommand = "RDMAPERF_TEST_AS_COMMAND"

// withWakeup makes such a process measure how the machine wakes. The others do not wait
// for it.
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

// inAllFormats runs a command line once, and returns the name of a directory with its
// results in every format beside what it printed as JSON.
func inAllFormats(t testing.TB, args ...string) (r ran, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "out")
	return rdmaperf(t, append(slices.Clone(args), "--format", "json", "-o", dir)...), dir
}

// contents reads a file of a directory of results.
func contents(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(self, quickly(args)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// children lists the processes that p started.
func (p *process) children() []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // gone meanwhile
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(p.cmd.Process.Pid) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
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
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
		_, rest, _ := strings.Cut(string(b), ") ")
		f := strings.Fields(rest)
		if err != nil || len(f) < 13 {
			return false
		}
		user, _ := strconv.Atoi(f[11]) // utime and stime, in ticks of 10 ms (proc_pid_stat(5))
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
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}
