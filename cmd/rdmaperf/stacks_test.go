package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
)

// all with less to do: stacks that can do none of it are left out, with a reason.
func TestRunAllLeavesOutWhatCannotRun(t *testing.T) {
	r := runs(t, "run", "--transport", "all", "--workload", "latency", "--op", "read", "-s", "64", "-n", "20",
		"--warmup", "none", "--no-save", "--format", "json")
	var stacks []string
	for _, res := range document(t, []byte(r.stdout)).Results {
		stacks = append(stacks, res.Stack)
	}
	if len(stacks) != 4 || !strings.HasPrefix(stacks[0], "iwarp") || stacks[1] != "tcp" ||
		!strings.HasPrefix(stacks[2], "sched") || !strings.HasPrefix(stacks[3], "lite") {
		t.Errorf("measured %q", stacks)
	}
	contains(t, r.stderr, "Measures 4 stacks", "Left out: grpc(tcp), no operation read", "Left out: mem, ")
}

// One command line measures stacks of sessions and stacks of calls side by side: a stack
// without sessions makes calls, one that has both makes them where it is asked to.
func TestEveryStackRunsLatencyAndThroughput(t *testing.T) {
	for _, c := range []struct {
		transport, op string
		want          []string
	}{
		{"mem,grpc(bufconn),lite+mem", "", []string{
			"mem latency send", "mem latency write", "mem latency read", "mem throughput write",
			"grpc latency call", "grpc throughput call",
			"lite latency send", "lite latency write", "lite latency read", "lite throughput write"}},
		{"lite+mem,grpc(bufconn)", "call", []string{
			"lite latency call", "lite throughput call", "grpc latency call", "grpc throughput call"}},
	} {
		args := []string{"run", "--transport", c.transport, "--workload", "latency,throughput", "-s", "64", "-n", "100",
			"--warmup", "none", "--no-save"}
		if c.op != "" {
			args = append(args, "--op", c.op)
		}
		var got []string
		for _, res := range measure(t, args...).Results {
			name, _, _ := strings.Cut(res.Stack, "(")
			name, _, _ = strings.Cut(name, "+")
			got = append(got, fmt.Sprintf("%s %s %s", name, res.Workload, res.Op))
			switch {
			case res.Operations < 100 || !res.Verified:
				t.Errorf("%s: %d operations, verified %v", got[len(got)-1], res.Operations, res.Verified)
			case res.Workload == "latency" && (res.Latency == nil || res.Op == "call" && res.RoundTrip != "full"):
				t.Errorf("%s: latency %v of a round trip %q", got[len(got)-1], res.Latency, res.RoundTrip)
			case res.Workload == "throughput" &&
				math.Abs(res.Throughput.BytesPerSecond/res.Throughput.OperationsPerSecond-64) > 0.01:
				t.Errorf("%s: %+v for operations of 64 bytes", got[len(got)-1], res.Throughput)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		equal(t, got, c.want)
	}
}

// The arm device is measured on the scheduled stacks alone, with one scheduler for all
// queue pairs, and the result's stack says so; the other arms are as they were given.
func TestRunMeasuresTheDeviceArm(t *testing.T) {
	args := []string{"run", "--workload", "hol", "--bulk-size", "64K", "--bulk-depth", "4", "-n", "20", "--warmup",
		"none", "--probe-gap", "0", "--no-save"}
	for _, c := range []struct {
		transport, arms string
		want            []string
	}{
		{"mem,sched+mem", "same-qp,device", []string{"mem same-qp", "sched(strict,slice=auto,window=auto)+mem same-qp",
			"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
		{"mem,sched+mem", "device", []string{"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
		{"sched(scope=device)+mem", "two-qp,device",
			[]string{"sched(strict,slice=auto,window=auto,scope=device)+mem two-qp",
				"sched(strict,slice=auto,window=auto,scope=device)+mem device"}},
	} {
		var got []string
		for _, res := range measure(t, append(args, "--transport", c.transport, "--hol-arm", c.arms)...).Results {
			h := hol.Of(&res)
			got = append(got, res.Stack+" "+h.Arm)
			if !res.Verified || h.ProbeLoaded.Count != 20 || h.Arm == "device" && res.QPs != 2 {
				t.Errorf("%s: %+v", got[len(got)-1], res)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		equal(t, got, c.want)
	}
}

// Stacks of messages and stacks of calls share one table of each workload.
func TestRunPutsCallsBesideMessages(t *testing.T) {
	fulltest.Only(t, "many stacks and points")
	r := runs(t, "run", "--transport", "mem,sched+mem,grpc(bufconn),grpc(fused)+mem", "--workload",
		"latency,throughput,hol", "-s", "64", "--bulk-size", "64K", "--bulk-depth", "4",
		"-n", "50", "--warmup", "none", "--no-save", "--details")
	for _, c := range []struct{ title, end string }{{"all stacks: latency", "all stacks: throughput"},
		{"all stacks: throughput", "variants: hol"}, {"variants: hol", "\nWhat you can rely on"}} {
		_, table, _ := strings.Cut(r.stdout, c.title)
		table, _, _ = strings.Cut(table, c.end)
		contains(t, table, "1: mem\n", "2: sched(", "3: grpc(bufconn", "4: grpc(fused", "  call ")
	}
	if strings.Count(r.stdout, "variants: hol") != 1 {
		t.Error("several tables of arms")
	}
}

// Side by side all stacks take their samples in the same loop; alone, in the best that
// they have; and a loop that a stack lacks is an error and not another loop.
func TestStacksSideBySideShareTheLoop(t *testing.T) {
	for _, c := range []struct{ transports, loop, want string }{
		{"mem", "auto", "provider"},
		{"mem", "plain", "plain"},
		{"mem,sched+mem", "auto", "plain"},
	} {
		t.Run(c.transports+" "+c.loop, func(t *testing.T) {
			d := measure(t, "run", "--transport", c.transports, "--loop", c.loop, "--workload", "latency", "--op",
				"send", "-s", "64", "-n", "200", "--no-save")
			for _, res := range d.Results {
				if got := res.Parameters["loop"]; got != c.want {
					t.Errorf("%s: loop %v, want %v", res.Stack, got, c.want)
				}
			}
		})
	}
}

// What a stack cannot do is left out with a line, and the rest is measured. If nothing is left, the first stack's error
// and exit code are the run's.
func TestRunLeavesOutWhatAStackCannotDo(t *testing.T) {
	latency := "--workload latency -s 64 -n 20 "
	for _, c := range []struct {
		args string
		code int
		want []string // measured
		said []string // lines of stderr
	}{
		{latency + "--transport tcp,grpc(tcp) --op send,call", 0, []string{"tcp send 64 x1", "grpc(tcp) call 64 x1"},
			[]string{"Left out: points of tcp, no operation call.", "Left out: points of grpc(tcp), no operation send."}},
		{latency + "--transport tcp,grpc(tcp) --op send", 0, []string{"tcp send 64 x1"},
			[]string{"Left out: grpc(tcp), no operation send."}},
		{latency + "--transport mem,lite+mem --op write --qp-sweep 1,64", 0,
			[]string{"mem write 64 x1", "lite+mem write 64 x1", "mem write 64 x64"},
			[]string{"Left out: points of lite+mem, 64 QPs are above the device's limit of 62."}},
		{latency + "--transport lite+mem --op write --qp-sweep 63,64", 2, nil,
			[]string{"rdmaperf: check lite+mem: 63 QPs are above the device's limit of 62, 64 QPs are above the " +
				"device's limit of 62; try another value, or another --transport"}},
		{latency + "--transport grpc(tcp),grpc(unix) --op send", 2, nil,
			[]string{"rdmaperf: check grpc(tcp): no operation send; try "}},
		{"--workload register --pattern threads --register-threads 64 --arms cache -s 4K,2G -D 2ms --transport mem", 0,
			[]string{"mem threads 4096 x1"},
			[]string{"Left out: 1 of 2 points of register, 137438953472 bytes are above the limit here, "}},
		{"--workload register --pattern threads --register-threads 64 --arms cache -s 2G -D 2ms --transport mem",
			77, nil,
			[]string{"rdmaperf: register cache 2 GiB repeated, 64 threads: 137438953472 bytes are above the limit here, "}},
	} {
		r := rdmaperf(t, append([]string{"run", "--no-save", "--format", "json"}, strings.Fields(c.args)...)...)
		doc, got := new(reports.Document), []string(nil)
		if r.stdout != "" {
			doc = document(t, []byte(r.stdout))
		}
		for _, res := range doc.Results {
			stack, _, _ := strings.Cut(res.Stack, "(k=4)")
			if below, ok := strings.CutPrefix(res.Stack, stack+"(k=4)"); ok {
				stack += below
			}
			got = append(got, fmt.Sprintf("%s %s %d x%v", stack, res.Op, res.SizeBytes, res.QPs))
		}
		lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
		if r.code != c.code || !slices.Equal(got, c.want) || !slices.EqualFunc(lines, c.said, strings.HasPrefix) {
			t.Errorf("%s: exit %d, measured %q, said %q; want %d, %q, %q", c.args, r.code, got, lines, c.code, c.want, c.said)
		}
	}
}

// The service arm runs beside the others, with the same calls outstanding, over processes
// of its own; what cannot be one says so.
func TestCallsThroughAServiceProcess(t *testing.T) {
	got := runs(t, "run", "--transport", "grpc(fused)+iwarp,grpc(service)+iwarp,grpc(service,event)+sched+iwarp",
		"--workload", "rpc", "-s", "64,100K", "-n", "50", "--outstanding", "1,8")
	contains(t, got.stdout, "grpc(service,bpev,", "grpc(service,event,", "side by side: rpc call", "depth 8, 1 connection")
}

// LITE's calls run beside their peers and through daemons, and a daemon has a client for
// each user of sharing; what cannot be one says so.
func TestCallsThroughDaemonsAndPeers(t *testing.T) {
	got := runs(t, "run", "--transport",
		"lite+iwarp,lite(rpc=send)+iwarp,lite(rpc=write)+iwarp,lite(daemon)+iwarp,lite(daemon,cross,k=1)+iwarp",
		"--workload", "rpc", "-s", "64,10K", "-n", "30")
	contains(t, got.stdout, "lite(rpc=send)+iwarp", "lite(rpc=write)+iwarp", "lite(daemon,k=4)+iwarp",
		"lite(daemon,cross,k=1)+iwarp", "side by side: rpc call")
	got = runs(t, "run", "--transport", "lite+iwarp,lite(daemon)+iwarp", "--workload", "sharing", "--users", "1,3",
		"-n", "60")
	contains(t, got.stdout, "lite(daemon,k=4)+iwarp")
	for _, args := range []string{"", "--socket s --listen nonsense", "--socket s --place-memory much",
		"--socket s --for -1s", "--socket s --places 0"} {
		args = strings.Replace(args, "--socket s", "--socket "+filepath.Join(t.TempDir(), "s"), 1)
		if got := rdmaperf(t, append([]string{"lite", "daemon"}, strings.Fields(args)...)...); got.code == 0 ||
			strings.TrimSpace(got.stderr) == "" {
			t.Errorf("lite daemon %s: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

// Sessions go through daemons as calls do, with the crossing hidden and not, and every byte is compared.
func TestSessionsThroughDaemons(t *testing.T) {
	d := measure(t, "run", "--transport", "lite+iwarp,lite(daemon)+iwarp,lite(daemon,cross)+iwarp", "--workload",
		"latency,throughput", "--op", "write,read", "-s", "64,4K", "-n", "40", "--timeout", "60s")
	n := map[string]int{}
	for _, res := range d.Results {
		if !res.Verified || res.Operations != 40 {
			t.Errorf("%s %s %s: %d operations, verified %v", res.Stack, res.Workload, res.Op, res.Operations, res.Verified)
		}
		n[res.Stack]++
	}
	if len(n) != 3 || n["lite(daemon,k=4)+iwarp(crc)"] != 8 || n["lite(daemon,cross,k=4)+iwarp(crc)"] != 8 {
		t.Errorf("%v", n)
	}
}
