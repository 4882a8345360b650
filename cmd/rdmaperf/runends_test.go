package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// begun waits until a run has its server child and measures.
func begun(t testing.TB, p *process) (child int) {
	t.Helper()
	eventually(t, "the run has a server child", func() bool {
		for _, child = range childrenOf(p.cmd.Process.Pid) {
			return true
		}
		return false
	})
	p.spins()
	return child
}

// interrupted presses Ctrl-C, which has to end p with a code long before the 30 s of --timeout.
func (p *process) interrupted(want int) {
	p.t.Helper()
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(15 * time.Second); code != want {
		p.t.Errorf("exit %d, want %d: %s", code, want, p.errs.String())
	}
}

func TestInterruptWritesThePartAndLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "run", "--transport", "iwarp", "--workload", "latency", "--op", "send", "-s", "64", "-D", "60s",
		"--json", file)
	child := begun(t, p)
	p.interrupted(reports.ExitInterrupted)
	d := documentOf(t, file)
	if d.Error == nil || !strings.Contains(d.Error.Message, "interrupted") || len(d.Results) != 1 ||
		d.Results[0].Operations == 0 {
		t.Errorf("document %+v, want one partial result and the interrupt", d)
	}
	if !strings.Contains(p.out.String(), "latency send") || strings.Count(p.errs.String(), "\n") != 1 {
		t.Errorf("stdout %q, stderr %q, want the table and one line", p.out.String(), p.errs.String())
	}
	if alive(child) {
		t.Error("the server child outlived the run")
	}
}

// The first interrupt waits for a peer that hangs; the second does not.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	server, port := serveHere(t)
	p := start(t, "run", "127.0.0.1", "-p", port, "--transport", "iwarp", "--workload", "throughput", "-s", "64", "-D",
		"60s", "--timeout", "30s")
	p.spins()
	server.cmd.Process.Signal(syscall.SIGSTOP)
	defer server.cmd.Process.Signal(syscall.SIGCONT)
	p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.done:
		t.Errorf("the first interrupt did not wait for the server: exit %d, %s", p.wait(0), p.errs.String())
	case <-time.After(300 * time.Millisecond):
	}
	p.interrupted(reports.ExitInterrupted)
}

// Whatever ends the client, its child goes with it.
func TestChildDiesWithItsParent(t *testing.T) {
	p := start(t, "run", "--transport", "tcp", "--workload", "latency", "-s", "64", "-D", "60s")
	child := begun(t, p)
	p.cmd.Process.Kill()
	p.wait(30 * time.Second)
	eventually(t, "the child is gone", func() bool { return !alive(child) })
}

// lose starts a run against a server, sends that a signal in mid window, and returns the run's document and stderr.
func lose(t *testing.T, sig syscall.Signal, limit time.Duration, stack, work string, flags ...string) (*reports.Document,
	string) {
	t.Helper()
	server, port := serveHere(t)
	p := start(t, slices.Concat([]string{"run", "127.0.0.1", "-p", port, "--transport", stack, "-D", "60s", "--warmup",
		"none", "--format", "json", "--workload"}, strings.Fields(work), flags)...)
	if strings.HasPrefix(work, "connect") {
		time.Sleep(5 * time.Second) // it waits most of the time
	} else {
		p.spins()
	}
	server.cmd.Process.Signal(sig)
	begin := time.Now()
	code := p.wait(limit * 10)
	if took := time.Since(begin); code != reports.ExitPeer || took > limit {
		t.Errorf("%s %s: exit %d after %v, %s, want 5 within %v", stack, work, code, took, p.errs.String(), limit)
	}
	d := document(t, p.out.Bytes())
	if d.Error == nil || d.Error.ExitCode != reports.ExitPeer {
		t.Errorf("%s %s: document %+v, want the error", stack, work, d.Error)
	}
	return d, p.errs.String()
}

// A server that is killed ends what is under way within the bound, whatever carries it, and what was measured is kept.
func TestServerKilledInMidRunExitsWithFive(t *testing.T) {
	const calls = "rpc --rpc unary,stream --outstanding 2 -q 2"
	for stack, work := range map[string]string{"iwarp": "latency --op send", "grpc(tcp)": calls, "grpc(unix)": calls,
		"grpc(dropin)+iwarp": calls, "grpc(fused,bp)+iwarp": calls, "grpc(fused,event)+iwarp": calls} {
		d, said := lose(t, syscall.SIGKILL, 30*time.Second, stack, work, "-s", "64")
		if len(d.Results) != 1 || d.Results[0].Operations == 0 || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: document %+v, want what came before the error; %q, want one line", stack, d, said)
		}
	}
}

// A client whose server is killed or stopped in mid window ends in time, with what was complete, whatever carries the
// workload.
func TestLostServerEndsEveryWorkloadInTime(t *testing.T) {
	for i, c := range []struct{ stack, work string }{
		{"lite(rpc=send)+iwarp", "rpc -q 4"}, {"lite+iwarp", "latency --op write"},
		{"grpc(fused)+iwarp", "rpc --rpc oneway"}, // the rest takes a minute
		{"tcp", "incast -s 64"}, {"sched+iwarp", "mixed"}, {"lite(daemon)+iwarp", "latency --op call"},
		{"grpc(dropin)+iwarp", "hol"}, {"grpc(service)+iwarp", "think"},
	} {
		if i >= 3 && !fulltest.Asked() {
			break
		}
		loseServer(t, c.stack, c.work)
	}
}

// Every workload over every stack likewise, which takes ten minutes.
func TestLostServerEndsEveryPairInTime(t *testing.T) {
	if !fulltest.Everything() {
		t.Skip("ten minutes of lost servers: RDMAPERF_TEST=everything runs them")
	}
	for _, row := range everyWork {
		work, out := strings.Fields(row.work)[0], strings.Fields(row.out)
		for _, stack := range twoHosts {
			mem := strings.ReplaceAll(stack, "+iwarp", "+mem")
			cannot := slices.Contains(out, stack) || slices.Contains(out, mem)
			if work == "think" { // it leaves out +mem because its calls need two processes
				cannot = slices.Contains(out, stack) || stack == "regcache+iwarp"
			}
			if !cannot && !slices.Contains(oneHost, work) {
				loseServer(t, stack, row.work)
			}
		}
	}
}

// twoHosts are the stacks of everyStack whose server is a process of its own.
var twoHosts = []string{"iwarp", "tcp", "sched+iwarp", "regcache+iwarp", "lite+iwarp", "lite(daemon)+iwarp",
	"lite(rpc=send)+iwarp", "lite(rpc=write)+iwarp", "grpc(tcp)", "grpc(unix)", "grpc(dropin)+iwarp", "grpc(fused)+iwarp",
	"grpc(service)+iwarp"}

// oneHost are the workloads that start all their processes by themselves.
var oneHost = []string{"locks", "qos", "regions", "sharing", "clients", "softrdma", "register", "allreduce"}

func loseServer(t *testing.T, stack, work string) {
	// On a busy machine a limit counts the time that the process was given, and four of it at most (engine.Patience).
	const limit, most, slack = 2 * time.Second, 4, 2 * time.Second
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		if stack == "lite(daemon)+iwarp" && sig == syscall.SIGSTOP && strings.Contains("mixed paramserver starvation",
			strings.Fields(work)[0]) {
			continue // the daemon, which goes on, serves one-sided operations
		}
		t.Run(stack+" "+work+" "+name, func(t *testing.T) {
			lose(t, sig, most*limit+slack, stack, work, "--timeout", limit.String())
		})
	}
}

func TestIntervalsAreShownAsTheyEnd(t *testing.T) {
	p := start(t, "run", "--transport", "mem", "--workload", "throughput", "--op", "write", "-s", "64", "-D", "2s",
		"--interval", "200ms", "--no-save")
	p.wait(30 * time.Second)
	if lines := strings.Count(p.errs.String(), " MiB/s\n"); lines < 5 || lines > 10 {
		t.Errorf("%d intervals shown, want about 10:\n%s", lines, p.errs.String())
	}
}

// Ctrl-C is how it is meant to end: with the result and exit code 0.
func TestInfiniteRunEndsWithItsResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "run", "--transport", "mem", "--workload", "latency", "--op", "send", "-s", "64", "--run-infinitely",
		"--json", file)
	p.spins()
	p.interrupted(0)
	d := documentOf(t, file)
	if d.Error != nil || len(d.Results) != 1 || d.Results[0].Operations == 0 || d.Results[0].Series != nil {
		t.Errorf("document %+v, want one result, no error and no series", d)
	}
}

// terminal opens a pseudo-terminal (pty(7)).
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := need(unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN))(t)
	slave = need(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// On a terminal there is a bar, which leaves no trace; in CI there is none.
func TestProgressOnATerminal(t *testing.T) {
	for _, ci := range []string{"", "true"} {
		master, slave := terminal(t)
		cmd := exec.Command(need(os.Executable())(t), append(aMoment[:len(aMoment)-2:len(aMoment)-2], "--repeat", "2", "-D",
			"50ms", "--json", filepath.Join(t.TempDir(), "r.json"))...)
		cmd.Env = append(os.Environ(), "TERM=xterm", "CI="+ci)
		cmd.Stderr = slave
		must(t, cmd.Run())
		// A byte of our own ends the reading: closing the slave is an error on Linux.
		need(slave.WriteString("\x04"))(t)
		seen := ""
		for b := make([]byte, 4096); !strings.HasSuffix(seen, "\x04"); {
			seen += string(b[:need(master.Read(b))(t)])
		}
		drawn := strings.Contains(seen, "1/2 mem ") && strings.Contains(seen, "2/2 mem ") && strings.Contains(seen, " left")
		if drawn != (ci == "") || ci != "" && len(seen) != 1 {
			t.Errorf("CI=%q: the terminal shows %q", ci, seen)
		}
		last := strings.TrimSuffix(seen[strings.LastIndexByte(seen, '\r')+1:], "\x04")
		if ci == "" && (strings.TrimSpace(last) != "" || strings.Contains(seen, "\n")) {
			t.Errorf("the bar leaves %q in %q", last, seen)
		}
	}
}
