package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
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
	d, err := reports.ReadDocument(bytes.NewReader(raw), catalogue.Results())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// serveHere starts a server process and returns its port.
func serveHere(t testing.TB, args ...string) (*process, string) {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free a moment later, most often
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		l.Close()
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

// Every mistake ends in one line on stderr, nothing on stdout, and its exit code.
func TestMistakesHaveOneLineAndTheirCode(t *testing.T) {
	_, taken := serveHere(t)
	for _, c := range []struct {
		args string
		code int
		want string // part of the line
	}{
		{"run --transport carrierpigeon", 2, "carrierpigeon"},
		{"run --transport iwarp(fast)", 2, "nocrc"},
		{"run --transport iwarp(nocrc", 2, "parentheses"},
		{"run --transport iwarp+tcp", 2, "cannot be layered over"},
		{"run --transport tcp+", 2, "name"},
		{"run --transport sched", 2, "needs another layer below it"},
		{"run --transport tcp,tcp", 2, "twice"},
		{"run --transport tcp:eth0", 2, "no devices"},
		{"run --transport tcp -d mlx5_0", 2, "-d mlx5_0 is for kernel verbs, and --transport tcp has none"},
		{"run --transport tcp,iwarp -x 3", 2, "-x 3 is for kernel verbs"},
		{"run --transport iwarp -i 1", 2, "-i 1 is for kernel verbs"},
		{"run --transport verbs:rxe0 -d rxe1", 2, "says otherwise"},
		{"run --transport verbs(gid=300)", 2, "want 0 to 255"},
		{"run --transport verbs(mtu=1500)", 2, "want 256, 512"},
		{"run --transport verbs(cm,gid=1)", 2, "rdma_cm chooses"},
		{"run --transport verbs(fast)", 2, "cm, port=N, gid=N"},
		{"run -x -2", 2, "want 0 to 255"},
		{"run -i 256", 2, "want 1 to 255"},
		{"run --transport mem 127.0.0.1", 2, "in-process only"},
		{"run --transport verbs:absent0", 77, "not run: "},
		{"run -d mlx5_0 -x 3 -R -F", 77, "verbs(cm):mlx5_0"},
		{"run --transport sched(fast)+iwarp", 2, "strict, aging, drr"},
		{"run --transport sched(slice=9Q)+iwarp", 2, "unit"},
		{"run --transport sched(slice=64K,window=1K)+iwarp", 2, "window of 1024 bytes"},
		{"run --transport sched(drr,weights=1:2:x)+iwarp", 2, "weights"},
		{"run --transport sched+tcp", 2, "not an RDMA provider"},
		{"run --transport lite+tcp", 2, "not an RDMA provider"},
		{"run --transport grpc(pigeon)", 2, "tcp, unix, bufconn, dropin, fused"},
		{"run --transport grpc(fused)", 2, "grpc(fused) needs an RDMA stack below it"},
		{"run --transport grpc(tcp)+iwarp", 2, "grpc(tcp) cannot be layered over another"},
		{"run --transport grpc(tcp,fused)+iwarp", 2, "exclude each other"},
		{"run --transport grpc(fused)+tcp", 2, "tcp is not an RDMA provider"},
		{"run --transport sched+grpc(tcp)", 2, "outermost"},
		{"run --transport grpc(fused,ring=100000)+iwarp", 2, "want a power of two"},
		{"run --transport grpc(fused,ring=2G)+iwarp", 2, "ring=2G"},
		{"run --transport grpc(fused,best)+iwarp", 2, "fused does without"},
		{"run --transport grpc(tcp,ring=64K)", 2, "for dropin, fused and service"},
		{"run --transport grpc(dropin,noland)+iwarp", 2, "is for fused, and this is dropin"},
		{"run --transport grpc(tcp,noland)", 2, "is for fused, and this is tcp"},
		{"run --transport grpc(dropin,bp,busy=1us)+iwarp", 2, "for the mode bpev"},
		{"run --transport grpc(dropin,busy=-1us)+iwarp", 2, "want 0 to 1m"},
		{"run --transport grpc(dropin,pollers=65)+iwarp", 2, "want 1 to 64"},
		{"run --transport grpc(dropin,event,watch)+iwarp", 2, "event mode sees no memory"},
		{"run --transport grpc(tcp,window=1K)", 2, "window 1024"},
		{"run --transport grpc(unix) 192.0.2.7", 2, "both ends on one machine"},
		{"run --transport grpc(tcp) --workload hol --hol-arm app-slicing", 2, "it carries calls"},
		{"run --transport grpc(tcp) --op send", 2, "operation of the workload rpc is call"},
		{"run --transport iwarp --workload rpc", 2, "no operation call"},
		{"run --transport grpc(tcp) --rpc shout", 2, "unknown kind of call"},
		{"run --transport grpc(tcp) --rpc oneway --rate 5", 2, "no latency"},
		{"run --transport grpc(tcp) --response 0", 2, "--response"},
		{"run --transport grpc(tcp) --outstanding 0", 2, "outstanding"},
		{"run --transport grpc(tcp) --outstanding 2 -t 2", 2, "exclude each other"},
		{"run --transport grpc(tcp) --outstanding 4096 -q 1024", 2, "above the limit of 65536"},
		{"run --transport grpc(tcp) --threads 2", 2, "goroutine for each call"},
		{"run --transport grpc(tcp) --polling event", 2, "its layer's mode"},
		{"run --transport grpc(fused,busy=soon)+iwarp", 2, "soon"},
		{"run --transport grpc(fused,lazy)+iwarp", 2, "lazy"},
		{"run --workload latency --rpc unary", 2, "for --workload rpc"},
		{"run --transport tcp --op fetch_add", 2, "no operation fetch_add"},
		{"run --no-such-flag", 2, "unknown flag"},
		{"run -n 10 -D 1", 2, "exclude each other"},
		{"run -s 64 -a", 2, "exclude each other"},
		{"run -n 0", 2, "at least 1"},
		{"run -D -3s", 2, "duration"},
		{"run -D soon", 2, "soon"},
		{"run -s 0", 2, "1 byte"},
		{"run -s 64,64", 2, "twice"},
		{"run -s 1Q", 2, "unit"},
		{"run -s 8G -n 10", 2, "limit"},
		{"run --transport tcp -s 2G -n 1", 2, "limit of 1073741824"},
		{"run --op fetch_add -s 64", 2, "atomics are 8 bytes"},
		{"run --op teleport", 2, "unknown operation"},
		{"run --workload gossip", 2, "unknown workload"},
		{"run --workload hol --op read", 2, "write or send"},
		{"run --transport iwarp --workload starvation --high-load 0,5000 -D 1ms", 2, "high load of 5000 %"},
		{"run --transport iwarp --workload hol --bulk-size 1M,64 -D 1ms", 2, "probe size 64"},
		{"run --transport iwarp --workload connect --op read,send -D 1ms", 2, "the operation is read, or call"},
		{"run --transport iwarp --workload incast --op send,read -D 1ms", 2, "send, write or write_imm"},
		{"run --transport grpc(tcp) --workload rpc --rpc unary,oneway --rate 9 -D 1ms", 2, "no rate"},
		{"run --transport grpc(tcp) --workload kv --records 0", 2, "0 records"},
		{"run --repeat 0", 2, "--rounds 0: want 1 to 1000"},
		{"run --interval soon", 2, "soon"},
		{"run --interval 2s -D 1s", 2, "interval"},
		{"run --interval 1s -n 10", 2, "has a duration"},
		{"run --interval 1us", 2, "1ms"},
		{"run --rate 0", 2, "--rate"},
		{"run --rate 1e12", 2, "rate"},
		{"run --rate 5 --rate-sweep 1,2", 2, "exclude each other"},
		{"run --rate-sweep 5:1:1", 2, "FROM:TO:STEP"},
		{"run --workload latency -b", 2, "for --workload throughput"},
		{"run --workload throughput,hol -b", 2, "for --workload throughput"},
		{"run -b --rate 5", 2, "for --workload"},
		{"run --transport mem -b --op fetch_add", 2, "one way"},
		{"run --workload incast -q 2", 2, "--clients"},
		{"run --workload connect --op send", 2, "operation is read"},
		{"run --workload connect -q 2", 2, "--concurrency"},
		{"run --workload connect --concurrency 300", 2, "want 1 to 256"},
		{"run --workload connect --polling event", 2, "busy polling"},
		{"run --concurrency 2 -b", 2, "for --workload"},
		{"run --workload incast --pin 0,1", 2, "one CPU"},
		{"run --workload incast --clients 0", 2, "above 0"},
		{"run --workload incast --clients 300", 2, "want 1 to 256"},
		{"run --workload incast --op read", 2, "send, write or write_imm"},
		{"run --workload incast --polling event", 2, "busy polling"},
		{"run --workload latency --clients 2", 2, "for --workload incast"},
		{"run --clients 2 -b", 2, "for --workload"},
		{"run -q 2 --qp-sweep 1,2", 2, "exclude each other"},
		{"run --workload hol --qp-sweep 1,2", 2, "hol-arm"},
		{"run --qp-sweep 1,2 --threads 3", 2, "thread"},
		{"run --polling event --qp-sweep 1,512", 2, "at most 256"},
		{"run --rate 5 --arrivals bursts", 2, "arrivals"},
		{"run --arrivals poisson", 2, "for --rate"},
		{"run --workload throughput --rate 5", 2, "for --workload latency"},
		{"run --workload hol --hol-arm left", 2, "want one of"},
		{"run --workload hol --bulk-size 64", 2, "less than the bulk size"},
		{"run --workload hol --bulk-size 1M,x", 2, "bulk-size"},
		{"run --workload hol --bulk-depth 0", 2, "bulk-depth"},
		{"run --workload hol --probe-size 0", 2, "probe-size"},
		{"run --workload hol --probe-interval soon", 2, "soon"},
		{"run --workload hol --probe-interval 5s", 2, "probe interval"},
		{"run --workload hol --probe-gap 1ms --probe-interval 1ms", 2, "exclude each other"},
		{"run --workload hol --polling event", 2, "busy polling"},
		{"run --workload hol -q 2", 2, "hol-arm"},
		{"run --workload hol -s 64", 2, "--bulk-size"},
		{"run --workload latency --bulk-size 1M", 2, "for --workload hol"},
		{"run --polling lazily", 2, "want busy, adaptive or event"},
		{"run --format xml", 2, "xml"},
		{"run -q 4 --threads 5", 2, "thread"},
		{"run -t 8 -Q 9 -s 64", 2, "--cq-mod 9"},
		{"run -t 1000000", 2, "depth"},
		{"run -I 1M -s 64 -n 10 --transport tcp", 2, "inline"},
		{"run --pin 1", 2, "two CPUs"},
		{"run --pin 1023,0", 2, "the client's CPU 1023 is none that this process may run on: "},
		{"run --pin 0,1023", 2, "the server's CPU 1023 is none"},
		{"run --warmup maybe", 2, "maybe"},
		{"run --nice 20", 2, "want auto or a nice value of 0 to 19"},
		{"run --transport grpc(tcp) --nice 5", 2, "threads of the Go runtime"},
		{"run --timeout 0", 2, "timeout"},
		{"run -p 70000 127.0.0.1", 2, "port"},
		{"run one two", 2, "one HOST"},
		{"run 127.0.0.1 -p 1 --timeout 2s", 5, "connection refused"},
		{"run no.such.host.invalid --timeout 5s", 5, "no.such.host.invalid"},
		{"serve -p 70000", 2, "port"},
		{"serve --max-clients 0", 2, "client"},
		{"serve extra", 2, "extra"},
		{"serve --max-window none", 2, "max-window"},
		{"serve --bind 127.0.0.1 -p " + taken, 1, "address already in use"},
		{"measure", 2, "unknown command"},
	} {
		t.Run(c.args, func(t *testing.T) {
			r := rdmaperf(t, strings.Fields(c.args)...)
			line := strings.TrimSuffix(r.stderr, "\n")
			if r.code != c.code || !strings.HasPrefix(line, "rdmaperf: ") || strings.Contains(line, "\n") ||
				!strings.Contains(line, c.want) {
				t.Errorf("exit %d, stderr %q, want exit %d and one line with %q", r.code, r.stderr, c.code, c.want)
			}
			if r.stdout != "" {
				t.Errorf("stdout %q, want nothing", r.stdout)
			}
		})
	}
}

// The whole way: two processes, every transport beside the other, all outputs.
func TestRunMeasuresSideBySide(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	r := rdmaperf(t, "run", "--transport", "tcp,iwarp(nocrc),mem", "--op", "send,write,read", "-s", "64", "-n", "60",
		"-q", "2",
		"--warmup", "10", "--json", file, "-o", filepath.Join(dir, "out"), "--seed", "7", "--details")
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit %d, stderr %q", r.code, r.stderr)
	}
	for _, want := range []string{"iwarp(nocrc) [soft]: latency send", "mem [mem, not a network]: throughput write",
		"side by side", "p99.99", "bandwidth[MiB/s]"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the table lacks %q:\n%s", want, r.stdout)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, raw)
	if d.Error != nil || len(d.Results) != 3*2*3 {
		t.Fatalf("%d results, error %+v, want 18 and none", len(d.Results), d.Error)
	}
	for _, res := range d.Results {
		if res.Operations != 120 || !res.Verified || res.QPs != 2 || res.Parameters["seed"] != 7.0 {
			t.Errorf("%s %s %s %d: %d operations, verified %v, %d QPs, seed %v", res.Stack, res.Workload, res.Op,
				res.SizeBytes,
				res.Operations, res.Verified, res.QPs, res.Parameters["seed"])
		}
		if mem := strings.HasPrefix(res.Stack, "mem"); (res.Label == "mem") != mem {
			t.Errorf("%s is labelled %s", res.Stack, res.Label)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out", "result.json")); err != nil {
		t.Error(err)
	}
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
		r := rdmaperf(t, append([]string{"run", "--transport", c.stacks, "--workload", "rpc", "-s", "64", "-n", "50",
			"--outstanding", "1,3", "--quiet", "--json", out}, c.host...)...)
		if r.code != 0 {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		d := document(t, raw)
		if len(d.Results) != 2*c.of {
			t.Fatalf("%d results", len(d.Results))
		}
		for _, res := range d.Results {
			if res.Operations != 50 || !res.Verified || res.Latency == nil || callsresults.Of(&res) == nil ||
				res.CPU == nil {
				t.Errorf("%s: %d operations, verified %v, %+v", res.Stack, res.Operations, res.Verified,
					callsresults.Of(&res))
			}
		}
		last := &d.Results[c.of-1]
		if want := "grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=64K,notice)+sched("; !strings.HasPrefix(
			last.Stack, want) || callsresults.Of(last).RingBytes != 64<<10 {
			t.Errorf("stack %s, %+v", last.Stack, callsresults.Of(last))
		}
		if !strings.Contains(r.stdout, "depth 3, ") {
			t.Errorf("the depth is missing:\n%s", r.stdout)
		}
	}
}

// grpc stacks alone mean rpc, and one stack with two busy times is two stacks.
func TestRunComparesCarriers(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "grpc(unix),grpc(fused,busy=0)+iwarp,grpc(fused,busy=20us)+iwarp",
		"-s", "100", "--response", "8", "-n", "5", "--quiet", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	seen := map[string]bool{}
	for _, res := range document(t, []byte(r.stdout)).Results {
		seen[res.Stack] = true
	}
	if len(seen) != 1+2 {
		t.Errorf("%d stacks: %v", len(seen), seen)
	}
}

func TestRunFormats(t *testing.T) {
	args := []string{"run", "--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50",
		"--warmup", "none"}
	r := rdmaperf(t, append(args, "--format", "json")...)
	if d := document(t, []byte(r.stdout)); r.code != 0 || len(d.Results) != 1 ||
		d.Results[0].Parameters["warmup_operations"] != nil {
		t.Errorf("json: exit %d, %+v", r.code, d)
	}
	r = rdmaperf(t, append(args, "--format", "bench")...)
	if !regexp.MustCompile(`(?m)^BenchmarkLatency/op=send/\S+\s+50 .* ns/op`).MatchString(r.stdout) {
		t.Errorf("bench: %s", r.stdout)
	}
	r = rdmaperf(t, "run", "--transport", "tcp", "--workload", "throughput", "-s", "64K", "-n", "50", "--report_gbits")
	if !strings.Contains(r.stdout, "Gb/s") {
		t.Errorf("--report_gbits: %s", r.stdout)
	}
}

// What was not asked for is left out where a transport cannot do it; --all and
// atomics choose their own sizes.
func TestRunChoosesWhatIsPossible(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "mem", "--op", "read,fetch_add", "-a", "-n", "3", "--warmup", "none",
		"--workload", "latency", "--format", "json")
	d := document(t, []byte(r.stdout))
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
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := document(t, raw); d.Error == nil || d.Error.ExitCode != 77 || r.stdout != string(raw) {
		t.Errorf("error %+v, want exit code 77, and the same on stdout", d.Error)
	}
	r = rdmaperf(t, "run", "--transport", "mem", "-n", "10", "-s", "64", "--json",
		filepath.Join(file, "no", "such", "place"))
	if r.code != 1 || !strings.Contains(r.stderr, "no/such/place") {
		t.Errorf("an impossible file: exit %d, %q", r.code, r.stderr)
	}
}

// The server's limits hold before anything runs.
func TestServerLimitsItsMemory(t *testing.T) {
	_, port := serveHere(t, "--max-window", "64K")
	r := rdmaperf(t, "run", "127.0.0.1", "-p", port, "--transport", "tcp", "--workload", "latency", "--op", "send",
		"-s", "64,1M", "-n", "10")
	if r.code != 2 || !strings.Contains(r.stderr, "limit of 65536") || r.stdout != "" {
		t.Errorf("exit %d, %q, %q, want 2 and the limit", r.code, r.stderr, r.stdout)
	}
}

func TestServerTakesClientsSideBySideAndOneAfterAnother(t *testing.T) {
	server, port := serveHere(t)
	run := []string{"run", "127.0.0.1", "-p", port, "--transport", "iwarp", "-s", "4K", "-n", "200", "--warmup", "none"}
	first := start(t, run...)
	second := rdmaperf(t, run...)
	if code := first.wait(30 * time.Second); code != 0 || second.code != 0 {
		t.Errorf("side by side: exits %d and %d\n%s%s", code, second.code, first.errs.String(), second.stderr)
	}
	if third := rdmaperf(t, run...); third.code != 0 {
		t.Errorf("one after another: exit %d, %s", third.code, third.stderr)
	}
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
	r := rdmaperf(t, "run", "--transport", "tcp", "--workload", "latency", "--op", "send", "-s", "64", "-n", "50",
		"--pin", "0,0", "--format", "json")
	d := document(t, []byte(r.stdout))
	client, _ := d.Results[0].Parameters["client"].(map[string]any)
	server, _ := d.Results[0].Parameters["server"].(map[string]any)
	if client["cpu"] != 0.0 || server["cpu"] != 0.0 {
		t.Errorf("client %v, server %v, want both on CPU 0", client, server)
	}
}
