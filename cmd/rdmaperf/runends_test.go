package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// begun waits until a run has its server child and measures.
func begun(t testing.TB, p *process) (child int) {
	t.Helper()
	eventually(t, "the run has a server child", func() bool {
		c := p.children()
		if len(c) > 0 {
			child = c[0]
		}
		return len(c) > 0
	})
	p.spins()
	return child
}

func TestInterruptWritesThePartAndLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	p := start(t, "run", "--transport", "iwarp", "--workload", "latency", "--op", "send", "-s", "64", "-D", "60s",
		"--json", file)
	child := begun(t, p)
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(30 * time.Second); code != reports.ExitInterrupted {
		t.Errorf("exit %d, want 130", code)
	}
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
	p.cmd.Process.Signal(os.Interrupt)
	if code := p.wait(15 * time.Second); code != reports.ExitInterrupted { // half of what it would wait for the server
		t.Errorf("exit %d, want 130", code)
	}
}

// Whatever ends the client, its child goes with it.
func TestChildDiesWithItsParent(t *testing.T) {
	p := start(t, "run", "--transport", "tcp", "--workload", "latency", "-s", "64", "-D", "60s")
	child := begun(t, p)
	p.cmd.Process.Kill()
	p.wait(30 * time.Second)
	eventually(t, "the child is gone", func() bool { return !alive(child) })
}

// A server that is killed ends what is under way within the bound, whatever carries it, and what was measured is kept.
func TestServerKilledInMidRunExitsWithFive(t *testing.T) {
	const calls = "--rpc unary,stream --outstanding 2 -q 2"
	for stack, work := range map[string]string{"iwarp": "--workload latency --op send", "grpc(tcp)": calls,
		"grpc(unix)": calls, "grpc(dropin)+iwarp": calls, "grpc(fused,bp)+iwarp": calls,
		"grpc(fused,event)+iwarp": calls} {
		server, port := serveHere(t)
		p := start(t, append([]string{"run", "127.0.0.1", "-p", port, "--transport", stack, "-s", "64", "-D", "60s",
			"--warmup", "none", "--format", "json"}, strings.Fields(work)...)...)
		p.spins()
		server.cmd.Process.Kill()
		if code := p.wait(30 * time.Second); code != 5 || strings.Count(p.errs.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, stderr %q, want 5 and one line", stack, code, p.errs.String())
		}
		if d := document(t, p.out.Bytes()); d.Error == nil || d.Error.ExitCode != 5 || len(d.Results) != 1 ||
			d.Results[0].Operations == 0 {
			t.Errorf("%s: document %+v, want the error and what came before it", stack, d)
		}
	}
}
