package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
)

// A sweep gives one result a rate, timed from the intended starts.
func TestRunMeasuresUnderLoad(t *testing.T) {
	d, dir := inAllFormats(t, 3, "run", "--transport", "iwarp", "--op", "send", "-s", "64", "-n", "100", "--rate-sweep",
		"2000:6000:2000", "--arrivals", "poisson")
	for i, res := range d.Results {
		want := float64(2000 * (i + 1))
		if res.Rate != want || res.Arrivals != "poisson" || res.Parameters["rate"] != want || res.LatencyCorrected != nil ||
			res.Latency.Count != 100 || res.LatencyService.Count != 100 || res.Latency.Mean < res.LatencyService.Mean ||
			!res.Verified {
			t.Errorf("result %+v", res)
		}
		if a, _ := res.Parameters["rate_achieved"].(float64); a <= 0 {
			t.Errorf("rate achieved %v", res.Parameters["rate_achieved"])
		}
	}
	contains(t, contents(t, dir, "text.txt"), "open loop with poisson arrivals", "rate",
		"without the wait for a late start:")
}

// Every repeat is a result of its own; the table has one row.
func TestRunRepeats(t *testing.T) {
	args := []string{"run", "--transport", "tcp,mem", "--workload", "latency,throughput", "--op", "write", "-s", "64",
		"-n", "100", "--repeat", "3"}
	d, dir := inAllFormats(t, 2*2*3, args...)
	var seen []string
	for _, res := range d.Results {
		seen = append(seen, fmt.Sprintf("%d %s %s", res.Repeat, res.Transport, res.Workload))
	}
	var want []string
	for _, w := range []string{"latency", "throughput"} { // in turns, and the other way round in every second round
		for _, turn := range []string{"1 tcp", "1 mem", "2 mem", "2 tcp", "3 tcp", "3 mem"} {
			want = append(want, turn+" "+w)
		}
	}
	equal(t, seen, want)
	if len(d.Repeats) != 4 {
		t.Errorf("%d summaries of repeats, want 4: %+v", len(d.Repeats), d.Repeats)
	}
	for _, s := range d.Repeats {
		if s.N != 3 || len(s.Figures) < 2 {
			t.Errorf("summary %+v, want 3 repeats and their intervals", s)
		}
	}
	text := contents(t, dir, "text.txt")
	for _, words := range []string{"over the repeats, with 95 %", "medians of 3 repeats"} {
		if n := strings.Count(text, words); n != 4 {
			t.Errorf("%d times %q, want 4:\n%s", n, words, text)
		}
	}
	if r := rdmaperf(t, append(args[:len(args)-2], "--format", "json")...); strings.Contains(r.stdout, `"repeat"`) {
		t.Error("a single series has a repeat number")
	}
}

// A series divides every window.
func TestRunShowsIntervals(t *testing.T) {
	args := []string{"run", "--transport", "tcp", "--workload", "latency,throughput,hol", "--op", "write", "-s", "64",
		"--bulk-size", "64K", "-D", "60ms", "--interval", "20ms"}
	dir := t.TempDir()
	for _, res := range measure(t, append(args, "-o", dir)...).Results {
		if res.Series == nil || len(res.Series.Points) != 3 {
			t.Errorf("%s: series %+v, want 3 points", res.Workload, res.Series)
		}
	}
	if text := contents(t, dir, "text.txt"); strings.Count(text, "every 20 ms:") != 4 {
		t.Errorf("want 4 tables of intervals:\n%s", text)
	}
}

// A sweep of connections is a point for each number, in latency and throughput.
func TestRunSweepsConnections(t *testing.T) {
	var seen []string
	for _, res := range measure(t, "run", "--transport", "mem,tcp", "--op", "write", "-s", "64", "-n", "50", "--qp-sweep",
		"1,3", "--threads", "2").Results {
		seen = append(seen, fmt.Sprintf("%s %s %d QPs %d threads %d ops", res.Transport, res.Workload, res.QPs,
			res.Threads, res.Operations))
	}
	var want []string
	for _, w := range []string{"latency", "throughput"} {
		for _, qps := range []int{1, 3} {
			for _, tr := range []string{"mem", "tcp"} {
				want = append(want, fmt.Sprintf("%s %s %d QPs %d threads %d ops", tr, w, qps, min(qps, 2), 50*qps))
			}
		}
	}
	equal(t, seen, want)
}

// Both sides send at once: each direction and the sum, in every format.
func TestRunMeasuresBothDirections(t *testing.T) {
	d, dir := inAllFormats(t, 2*2*3, "run", "--transport", "iwarp,tcp", "-b", "--op", "send,write", "-s", "4K", "-n",
		"200", "--repeat", "3")
	for _, res := range d.Results {
		b := throughput.Of(&res)
		if b == nil || b.FromClient.Operations != 200 || b.FromServer.Operations != 200 || res.Operations != 400 ||
			!res.Verified || res.Parameters["bidirectional"] != true || res.MeasuredBy != "both" {
			t.Errorf("result %+v, directions %+v", res, b)
		}
	}
	for name, want := range map[string][]string{
		"text.txt":             {"throughput send", "directions both", "from client bw", "from server bw", "medians of 3 repeats"},
		"exports/perftest.txt": {"BW average is the sum", "directions both"},
		"exports/bench.txt":    {"/directions=both", "from_server.bw-B/s"},
		"exports/results.csv":  {",from_client.bw,bytes,B/s,more,"},
	} {
		contains(t, contents(t, dir, name), want...)
	}
}

// Many clients send to one server: aggregate and shares, a point for each number.
func TestRunMeasuresIncast(t *testing.T) {
	d, dir := inAllFormats(t, 2, "run", "--transport", "iwarp", "--clients", "2,4", "--op", "send", "-s", "4K", "-n", "50")
	for i, n := range []int{2, 4} {
		res := d.Results[i]
		if res.Workload != "incast" || res.QPs != n || res.Operations != int64(50*n) || incast.Of(&res) == nil ||
			len(incast.Of(&res).PerClient) != n || !res.Verified {
			t.Errorf("result %+v, incast %+v", res, incast.Of(&res))
		}
	}
	contains(t, contents(t, dir, "text.txt"), "incast send", "QPs  #bytes", "jain")
}

// Connections are set up, one after the other and several at once.
func TestRunMeasuresConnections(t *testing.T) {
	d, dir := inAllFormats(t, 4, "run", "--transport", "tcp,iwarp", "--workload", "connect", "--concurrency", "1,3", "-n",
		"20")
	for i, res := range d.Results {
		n := []int{1, 1, 3, 3}[i]
		if c := connect.Of(&res); c == nil || c.AtOnce != n || res.Operations != int64(20*n) || !res.Verified ||
			c.Create.Count != int64(20*n) {
			t.Errorf("result %+v", res)
		}
	}
	contains(t, contents(t, dir, "text.txt"), "connect read", "first", "disconnect", "operation")
}
