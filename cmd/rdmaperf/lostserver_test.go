package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
)

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
var oneHost = []string{"locks", "qos", "regions", "sharing", "clients", "softrdma", "register",
	"allreduce"}

func loseServer(t *testing.T, stack, work string) {
	const limit = 2 * time.Second
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP} {
		if stack == "lite(daemon)+iwarp" && sig == syscall.SIGSTOP && strings.Contains("mixed paramserver starvation",
			strings.Fields(work)[0]) {
			continue // the daemon, which goes on, serves one-sided operations
		}
		t.Run(stack+" "+work+" "+name, func(t *testing.T) {
			server, port := serveHere(t)
			p := start(t, append([]string{"run", "127.0.0.1", "-p", port, "--transport", stack, "-D", "60s",
				"--warmup", "none", "--timeout", limit.String(), "--format", "json", "--workload"},
				strings.Fields(work)...)...)
			if strings.HasPrefix(work, "connect") {
				time.Sleep(5 * time.Second) // it waits most of the time
			} else {
				p.spins()
			}
			server.cmd.Process.Signal(sig)
			begin := time.Now()
			code := p.wait(10 * limit)
			const slack = 2 * time.Second
			if took := time.Since(begin); code != reports.ExitPeer || took > limit+slack {
				t.Errorf("exit %d after %v, %s", code, took, p.errs.String())
			}
			if d := document(t, p.out.Bytes()); d.Error == nil || d.Error.ExitCode != reports.ExitPeer {
				t.Errorf("document %+v, want the error", d.Error)
			}
		})
	}
}
