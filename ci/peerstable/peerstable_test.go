package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Output of the tools themselves: libfabric 1.17.0, UCX 1.13.1, qperf 0.4.11.
const (
	fiOut = `bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      50k     =50k     6.1m        0.41s     15.67       4.08       0.24
`
	ucxOut = `+--------------+--------------+------------------------------+---------------------+-----------------------+
|              |              |        latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
+--------------+--------------+----------+---------+---------+----------+----------+-----------+-----------+
[thread 0]            200000      3.700     3.900     3.900       15.00      15.00      250000      250000
Final:                100000      3.741     3.980     3.981       15.34      15.35      251275      251276
`
	benchOut = `goos: linux
pkg: github.com/rdmaperf/rdmaperf/reports
BenchmarkRecord-2    	42735204	        12.25 ns/op	       0 B/op	       0 allocs/op
PASS
`
)

func TestProbesReadTheToolsOutput(t *testing.T) {
	for _, c := range []struct {
		probe, text string
		want        values
	}{
		{"floor-latency", `{"name":"latency","size_bytes":64,"count":9,"min_ns":2306.0,"p50_ns":2898.8,"p99_ns":3276.2}`, values{"floor/latency": 2898.8}},
		{"floor-stream", `{"name":"stream","size_bytes":1048576,"count":8568,"bytes_per_second":4500416065}`,
			values{"floor/stream": 4500416065}},
		{"floor-spread", `{"name":"spread","size_bytes":1048576,"buffers":16,"count":8568,"bytes_per_second":4500416065}`, values{"floor/spread": 4500416065}},
		{"fi-latency", fiOut, values{"libfabric/latency": 4080}},
		{"ucx-latency", ucxOut, values{"ucx/latency": 3741}},
		{"ucx-stream", ucxOut, values{"ucx/stream": 15.35 * (1 << 20)}},
		{"ucx-rate", ucxOut, values{"ucx/rate": 251276}},
		{"qperf-latency", "tcp_lat:\n    latency  =  9.14 us\n", values{"qperf/latency": 9140}},
		{"qperf-stream", "tcp_bw:\n    bw  =  3.51 GB/sec\n", values{"qperf/stream": 3.51e9}},
		{"record", benchOut, values{"record/cost": 12.25}},
	} {
		got, err := probes[c.probe]([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.probe, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.probe, d)
		}
	}
}

func TestProbesRefuseWhatIsNotTheirs(t *testing.T) {
	for name, parse := range probes {
		for _, text := range []string{"", "\n", "connection refused\n", "{}", `{"name":"latency","p50_ns":0}`,
			"Final: 1 2 3\n", "bw = 3 furlongs", "latency = 0 us\n"} {
			if v, err := parse([]byte(text)); err == nil {
				t.Errorf("%s of %q = %v, want an error", name, text, v)
			}
		}
	}
}

func FuzzProbes(f *testing.F) {
	for _, s := range []string{"", fiOut, ucxOut, benchOut, "bw = 1 GB/sec", `{"schema":"rdmaperf/v1","results":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, parse := range probes {
			v, err := parse(b)
			if err == nil && len(v) == 0 {
				t.Errorf("%s: neither a value nor an error", name)
			}
		}
	})
}

var spaces = regexp.MustCompile(` +`)

// doc is a document of rdmaperf as its reports package writes it.
func doc(t *testing.T, results ...reports.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	d := reports.Document{Started: time.Unix(1, 0), Command: []string{"rdmaperf"},
		Environment: reports.Environment{CPUs: 2}, Results: results}
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func latency(transport string, ns float64) reports.Result {
	return reports.Result{Stack: transport, Transport: transport, Label: reports.LabelSoft, Workload: "latency",
		Op: "send", SizeBytes: 64,
		Depth: 1, QPs: 1, Polling: reports.PollingBusy, Verified: true, Latency: &reports.Latency{Count: 1000, P50: ns}}
}

func throughput(transport string, size int64, bytesPerSecond float64) reports.Result {
	return reports.Result{Stack: transport, Transport: transport, Label: reports.LabelSoft, Workload: "throughput",
		Op: "write", SizeBytes: size,
		Depth: 16, QPs: 1, Verified: true, Throughput: &reports.Throughput{BytesPerSecond: bytesPerSecond,
			OperationsPerSecond: bytesPerSecond / float64(size)}}
}

func TestDocumentGivesTheGoalsSeries(t *testing.T) {
	got, err := document(doc(t, latency("tcp", 3000), latency("iwarp(nocrc)", 3500), throughput("iwarp", 1<<20, 4e9),
		throughput("iwarp", 64, 64*3.5e6)))
	if err != nil {
		t.Fatal(err)
	}
	want := values{"tcp/latency": 3000, "iwarp(nocrc)/latency": 3500, "iwarp/stream": 4e9, "iwarp/rate": 3.5e6}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDocumentRefusesRunsThatProveNothing(t *testing.T) {
	lost, blind, sleepy := latency("tcp", 3000), latency("tcp", 3000), latency("tcp", 3000)
	lost.Errors, blind.Verified, sleepy.Polling = 1, false, reports.PollingEvent
	for name, r := range map[string]reports.Result{"failed": lost, "not verified": blind, "polling is event": sleepy} {
		v, err := document(doc(t, r))
		if err == nil || !strings.Contains(err.Error(), name) || len(v) > 0 {
			t.Errorf("document = %v, %v, want an error with %q and no value", v, err, name)
		}
	}
}

// machine is the raw output of three repeats in which everything meets its goal.
func machine(t *testing.T) fstest.MapFS {
	dir := fstest.MapFS{}
	put := func(repeat int, probe string, b []byte) {
		dir[fmt.Sprintf("%d.%s", repeat, probe)] = &fstest.MapFile{Data: b}
	}
	for repeat, slow := range map[int]float64{1: 1, 2: 4, 3: 1.5} { // the machine is busy in repeat 2
		put(repeat, "floor-latency", fmt.Appendf(nil, `{"name":"latency","p50_ns":%f}`, 3000*slow))
		put(repeat, "floor-spread", fmt.Appendf(nil, `{"name":"spread","bytes_per_second":%f}`, 4.5e9/slow))
		put(repeat, "floor-stream", fmt.Appendf(nil, `{"name":"stream","bytes_per_second":%f}`, 6e9/slow))
		put(repeat, "run-latency", doc(t, latency("tcp", 3300*slow), latency("iwarp", 3960*slow),
			latency("iwarp(nocrc)", 3900*slow)))
		put(repeat, "run-stream", doc(t, throughput("tcp", 1<<20, 5e9/slow), throughput("iwarp", 1<<20, 4e9/slow),
			throughput("iwarp(nocrc)", 1<<20, 4.9e9/slow)))
		put(repeat, "run-rate", doc(t, throughput("iwarp", 64, 64*4e6)))
		put(repeat, "record", []byte(benchOut))
	}
	return dir
}

func tableOf(t *testing.T, dir fstest.MapFS, only string) *table {
	t.Helper()
	sources, err := selection(only)
	if err != nil {
		t.Fatal(err)
	}
	r, err := readDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return build(r, sources)
}

func find(t *testing.T, tab *table, name, group string) line {
	t.Helper()
	for _, l := range tab.Lines {
		if l.Name == name && l.Group == group {
			return l
		}
	}
	t.Fatalf("no line %q in %q", name, group)
	return line{}
}

func TestAllGoalsMet(t *testing.T) {
	tab := tableOf(t, machine(t), "")
	if err := tab.outcome(); err != nil {
		t.Errorf("outcome = %v, want none", err)
	}
	iwarp := find(t, tab, "rdmaperf iwarp", latencyGroup)
	if iwarp.Verdict != targets.Pass || iwarp.Value != 3960*1.5 || fmt.Sprintf("%.3f", iwarp.Ratio) != "1.200" {
		t.Errorf("iwarp latency = %+v, want the median 5940, the ratio 1.2 and a pass", iwarp)
	}
	for _, l := range tab.Lines {
		if l.Verdict != targets.Pass && l.Target != "" {
			t.Errorf("%s: verdict %q with target %q", l.Name, l.Verdict, l.Target)
		}
		if strings.HasPrefix(l.Series, "ucx/") || strings.Contains(l.Name, "beside") {
			t.Errorf("a line of a tool that was not there: %+v", l)
		}
	}
	if l := find(t, tab, "C floor, 16 buffers", streamGroup); unitOf(l.Series) != "B/s" {
		t.Errorf("%s is in %s", l.Name, unitOf(l.Series))
	}
	tab.Note = "a remark"
	var text bytes.Buffer
	if err := tab.writeText(&text); err != nil {
		t.Fatal(err)
	}
	squeezed := spaces.ReplaceAllString(text.String(), " ")
	for _, want := range []string{
		"\n rdmaperf iwarp 5.94 us 1.20x of tcp (1.20 to 1.20) <= 1.25x pass\n",
		"\n rdmaperf iwarp 4.00 M/s >= 3.00 M/s pass\n",
		"\n reports.Recorder 12.2 ns <= 20.0 ns pass\n",
		"\nnote: a remark\n",
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("text lacks %q:\n%s", want, &text)
		}
	}
}

// Every goal turns red when its figure is worse, and the exit code is 3.
func TestEachGoalCanBeMissed(t *testing.T) {
	for _, c := range []struct {
		name, group, probe string
		text               []byte
	}{
		{"rdmaperf tcp", latencyGroup, "run-latency", doc(t, latency("tcp", 3500), latency("iwarp", 3960),
			latency("iwarp(nocrc)", 3900))},
		{"rdmaperf iwarp", latencyGroup, "run-latency", doc(t, latency("tcp", 3300), latency("iwarp", 4200),
			latency("iwarp(nocrc)", 3900))},
		{"rdmaperf iwarp", streamGroup, "run-stream",
			doc(t, throughput("tcp", 1<<20, 5e9), throughput("iwarp", 1<<20, 3.7e9),
				throughput("iwarp(nocrc)", 1<<20, 4.9e9))},
		{"rdmaperf iwarp(nocrc)", streamGroup, "run-stream",
			doc(t, throughput("tcp", 1<<20, 5e9), throughput("iwarp", 1<<20, 4e9),
				throughput("iwarp(nocrc)", 1<<20, 4.4e9))},
		{"rdmaperf iwarp", rateGroup, "run-rate", doc(t, throughput("iwarp", 64, 64*2.9e6))},
		{"reports.Recorder", recordGroup, "record", []byte("BenchmarkRecord-2 1000 20.5 ns/op\n")},
		{"iwarp beside libfabric", latencyGroup, "fi-latency", []byte(strings.Replace(fiOut, "4.08", "3.90", 1))},
		{"iwarp beside UCX", latencyGroup, "ucx-latency", []byte(ucxOut)},
	} {
		dir := machine(t)
		for name := range dir {
			if !strings.HasPrefix(name, "1.") {
				delete(dir, name)
			}
		}
		dir["1."+c.probe] = &fstest.MapFile{Data: c.text}
		tab := tableOf(t, dir, "")
		if l := find(t, tab, c.name, c.group); l.Verdict != targets.Fail {
			t.Errorf("%s, %s: %+v, want a fail", c.group, c.name, l)
		}
		if code := reports.Code(tab.outcome()); code != reports.ExitThreshold {
			t.Errorf("%s, %s: exit code %d, want %d", c.group, c.name, code, reports.ExitThreshold)
		}
	}
}

func TestWhatIsMissingIsNotAPass(t *testing.T) {
	for _, probe := range []string{"floor-latency", "floor-spread", "run-latency", "run-stream", "run-rate", "record"} {
		dir := machine(t)
		for repeat := 1; repeat <= 3; repeat++ {
			delete(dir, fmt.Sprintf("%d.%s", repeat, probe))
			dir[fmt.Sprintf("%d.%s.failed", repeat, probe)] = &fstest.MapFile{Data: []byte("exit code 5: no answer\n")}
		}
		tab := tableOf(t, dir, "")
		if code := reports.Code(tab.outcome()); code != reports.ExitFailed {
			t.Errorf("without %s: exit code %d, want %d", probe, code, reports.ExitFailed)
		}
		if len(tab.Failures) != 3 || !strings.Contains(tab.Failures[0], probe+": exit code 5: no answer") {
			t.Errorf("without %s: failures = %q", probe, tab.Failures)
		}
	}
	dir := machine(t)
	dir["2.run-rate"] = &fstest.MapFile{Data: []byte("{")}
	if code := reports.Code(tableOf(t, dir, "").outcome()); code != reports.ExitFailed {
		t.Errorf("with a broken document: exit code %d, want %d", code, reports.ExitFailed)
	}
}

func TestOnlyWhatWasChosenIsJudged(t *testing.T) {
	dir := machine(t)
	for name := range dir {
		if strings.Contains(name, "run-") || strings.Contains(name, "record") {
			delete(dir, name)
		}
	}
	tab := tableOf(t, dir, "floor")
	if err := tab.outcome(); err != nil || len(tab.Lines) != 3 {
		t.Errorf("floor alone: %d lines, %v, want 3 and no error", len(tab.Lines), err)
	}
	if tcp := find(t, tableOf(t, machine(t), "rdmaperf"), "rdmaperf tcp", latencyGroup); tcp.Target != "" ||
		tcp.Verdict != targets.None {
		t.Errorf("tcp without the floor = %+v, want no target", tcp)
	}
	for _, bad := range []string{"flor", "floor,", ","} {
		if _, err := selection(bad); err == nil {
			t.Errorf("selection(%q) succeeds", bad)
		}
	}
}

func TestJSONHasNoNullLists(t *testing.T) {
	b, err := json.Marshal(tableOf(t, fstest.MapFS{}, ""))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(":null")) {
		t.Errorf("null in %s", b)
	}
}
