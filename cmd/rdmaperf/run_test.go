package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// document reads and validates a result document.
func document(t testing.TB, raw []byte) *reports.Document {
	t.Helper()
	reporttest.Validate(t, raw)
	return need(reports.ReadDocument(bytes.NewReader(raw), catalogue.Results()))(t)
}

// documentOf is document of a file.
func documentOf(t testing.TB, file string) *reports.Document {
	t.Helper()
	return document(t, need(os.ReadFile(file))(t))
}

// serveHere starts a server process and returns its port.
func serveHere(t testing.TB, args ...string) (*process, string) {
	t.Helper()
	for {
		port := freePort(t)
		p := start(t, append([]string{"serve", "--bind", "127.0.0.1", "-p", port}, args...)...)
		listens := false
		eventually(t, "the server listens", func() bool {
			select {
			case <-p.done:
				return true
			default:
			}
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if listens = err == nil; listens {
				c.Close()
			}
			return listens
		})
		if listens {
			return p, port
		}
		if said := p.errs.String(); !strings.Contains(said, "address already in use") {
			t.Fatalf("the server ended: %s", said)
		}
	}
}

// The whole way: two processes, every transport beside the other, all outputs.
func TestRunMeasuresSideBySide(t *testing.T) {
	dir := t.TempDir()
	r := runs(t, "run", "--transport", "tcp,iwarp(nocrc),mem", "--op", "send,write,read", "-s", "64", "-n", "60",
		"-q", "2", "--warmup", "10", "--json", filepath.Join(dir, "r.json"), "-o", filepath.Join(dir, "out"), "--seed", "7",
		"--details")
	if r.stderr != "" {
		t.Errorf("stderr %q", r.stderr)
	}
	contains(t, r.stdout, "iwarp(nocrc) [soft]: latency send", "mem [mem, not a network]: throughput write",
		"side by side", "p99.99", "bandwidth[MiB/s]")
	d := documentOf(t, filepath.Join(dir, "r.json"))
	if d.Error != nil || len(d.Results) != 3*2*3 {
		t.Fatalf("%d results, error %+v, want 18 and none", len(d.Results), d.Error)
	}
	for _, res := range d.Results {
		if res.Operations != 120 || !res.Verified || res.QPs != 2 || res.Parameters["seed"] != 7.0 {
			t.Errorf("%s %s %s %d: %d operations, verified %v, %d QPs, seed %v", res.Stack, res.Workload, res.Op, res.SizeBytes,
				res.Operations, res.Verified, res.QPs, res.Parameters["seed"])
		}
		if mem := strings.HasPrefix(res.Stack, "mem"); (res.Label == "mem") != mem {
			t.Errorf("%s is labelled %s", res.Stack, res.Label)
		}
	}
	contents(t, dir, "out/result.json")
}

// Two processes, every form, and a server that was told nothing of the test.
func TestRunMeasuresCalls(t *testing.T) {
	_, port := serveHere(t)
	const fused = "grpc(fused,ring=64K)+sched+iwarp"
	for _, c := range []struct {
		stacks string
		of     int
		host   []string
	}{{"grpc(tcp,best),grpc(unix),grpc(dropin)+iwarp," + fused, 4, nil},
		{"grpc(tcp)," + fused, 2, []string{"127.0.0.1", "-p", port}}} {
		out := filepath.Join(t.TempDir(), "g.json")
		r := runs(t, append([]string{"run", "--transport", c.stacks, "--workload", "rpc", "-s", "64", "-n", "50",
			"--outstanding", "1,3", "--quiet", "--json", out}, c.host...)...)
		d := documentOf(t, out)
		if len(d.Results) != 2*c.of {
			t.Fatalf("%d results", len(d.Results))
		}
		for _, res := range d.Results {
			if res.Operations != 50 || !res.Verified || res.Latency == nil || callsresults.Of(&res) == nil ||
				res.CPU == nil {
				t.Errorf("%s: %d operations, verified %v, %+v", res.Stack, res.Operations, res.Verified, callsresults.Of(&res))
			}
		}
		last := &d.Results[c.of-1]
		if want := "grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=64K,notice)+sched("; !strings.HasPrefix(
			last.Stack, want) || callsresults.Of(last).RingBytes != 64<<10 {
			t.Errorf("stack %s, %+v", last.Stack, callsresults.Of(last))
		}
		contains(t, r.stdout, "depth 3, ")
	}
}

// grpc stacks alone mean rpc, and one stack with two busy times is two stacks.
func TestRunComparesCarriers(t *testing.T) {
	d := measure(t, "run", "--transport", "grpc(unix),grpc(fused,busy=0)+iwarp,grpc(fused,busy=20us)+iwarp",
		"-s", "100", "--response", "8", "-n", "5", "--quiet")
	seen := map[string]bool{}
	for _, res := range d.Results {
		seen[res.Stack] = true
	}
	if len(seen) != 1+2 {
		t.Errorf("%d stacks: %v", len(seen), seen)
	}
}

// What was not asked for is left out where a transport cannot do it; --all and atomics choose their own sizes.
func TestRunChoosesWhatIsPossible(t *testing.T) {
	d := measure(t, "run", "--transport", "mem", "--op", "read,fetch_add", "-a", "-n", "3", "--warmup", "none",
		"--workload", "latency")
	var sizes []string
	for _, res := range d.Results {
		sizes = append(sizes, fmt.Sprintf("%s:%d", res.Op, res.SizeBytes))
	}
	if got := strings.Join(sizes, " "); len(sizes) != 24 || !strings.HasPrefix(got, "read:2 read:4") ||
		!strings.HasSuffix(got, "read:8388608 fetch_add:8") {
		t.Errorf("sizes %s", got)
	}
}

// A failed run still writes its document, with the error in it.
func TestFailedRunWritesItsDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	r := rdmaperf(t, "run", "--transport", "verbs:absent0", "--json", file, "--format", "json")
	raw := need(os.ReadFile(file))(t)
	if d := document(t, raw); d.Error == nil || d.Error.ExitCode != 77 || r.stdout != string(raw) {
		t.Errorf("error %+v, want exit code 77, and the same on stdout", d.Error)
	}
	fails(t, 1, "no/such/place", "run", "--transport", "mem", "-n", "10", "-s", "64", "--json",
		filepath.Join(file, "no", "such", "place"))
}

// The server's limits hold before anything runs.
func TestServerLimitsItsMemory(t *testing.T) {
	_, port := serveHere(t, "--max-window", "64K")
	failsInALine(t, 2, "limit of 65536", "run", "127.0.0.1", "-p", port, "--transport", "tcp", "--workload", "latency",
		"--op", "send", "-s", "64,1M", "-n", "10")
}

func TestServerTakesClientsSideBySideAndOneAfterAnother(t *testing.T) {
	server, port := serveHere(t)
	run := []string{"run", "127.0.0.1", "-p", port, "--transport", "iwarp", "-s", "4K", "-n", "200", "--warmup", "none"}
	first := start(t, run...)
	second := rdmaperf(t, run...)
	if code := first.wait(30 * time.Second); code != 0 || second.code != 0 {
		t.Errorf("side by side: exits %d and %d\n%s%s", code, second.code, first.errs.String(), second.stderr)
	}
	runs(t, run...)
	server.cmd.Process.Signal(syscall.SIGTERM)
	if code := server.wait(10 * time.Second); code != 0 {
		t.Errorf("SIGTERM: the server exits with %d, want 0", code)
	}
}

func TestChildFlagIsRefusedOutsideAChild(t *testing.T) {
	p := start(t, "serve", "--once-parent", "--bind", "127.0.0.1", "-p", "0")
	if code := p.wait(10 * time.Second); code != 2 || !strings.Contains(p.errs.String(), "is no pipe") {
		t.Errorf("exit %d, %q, want 2", code, p.errs.String())
	}
}

func TestPinning(t *testing.T) {
	d := measure(t, "run", "--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50",
		"--pin", "0,0")
	client, _ := d.Results[0].Parameters["client"].(map[string]any)
	server, _ := d.Results[0].Parameters["server"].(map[string]any)
	if client["cpu"] != 0.0 || server["cpu"] != 0.0 {
		t.Errorf("client %v, server %v, want both on CPU 0", client, server)
	}
}
