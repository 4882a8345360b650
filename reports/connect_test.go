package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	connectkind "github.com/rdmaperf/rdmaperf/reports/kinds/connect"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	csvformat "github.com/rdmaperf/rdmaperf/reports/render/csv"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// connectDocument has connection set-up of two stacks, one and four at once.
func connectDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for i, stack := range []string{"tcp", "iwarp(crc)"} {
		for _, n := range []int{1, 4} {
			f := float64(n * (i + 1))
			d.Results = append(d.Results, reports.Result{
				Stack: stack, Label: reports.LabelSoft, Workload: "connect", Op: "read", SizeBytes: 64, Depth: 1, QPs: n, Threads: n,
				Polling: reports.PollingBusy, RoundTrip: reports.RoundTripFull, MeasuredBy: "client", DurationNs: 3e9, Operations: 30_000, Verified: true,
				Latency: latency(30_000, 90_000*f), Throughput: &reports.Throughput{OperationsPerSecond: 10_000},
				Kind: kind("connect"), Detail: &connectkind.Connect{AtOnce: n, Create: *latency(30_000, 10_000*f), Connect: *latency(30_000, 60_000*f),
					FirstRoundTrip: *latency(30_000, 20_000*f), Disconnect: *latency(30_000, 8_000*f), Full: *latency(30_000, 98_000*f)},
			})
		}
	}
	return of(d)
}

// Every stage of a connection stands in every format, and no bandwidth does.
func TestConnect(t *testing.T) {
	d := connectDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-connect.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, " 10000 msg/s") || strings.Contains(b, " B/s\n") || !strings.Contains(b, "BenchmarkConnect/op=read") {
		t.Errorf("no benchmark of connections:\n%s", b)
	}
	if p := string(perftest(t, d, false)); strings.Contains(p, "BW average") || !strings.Contains(p, "t_typical") {
		t.Errorf("perftest:\n%s", p)
	}
	var page, sheet bytes.Buffer
	if err := csvformat.Write(&sheet, d); err != nil || !strings.Contains(sheet.String(), ",disconnect.p99,time,ns,less,") {
		t.Errorf("CSV without stages, %v", err)
	}
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="setup"`, `id="connections"`, "tcp, first round trip", "Connect read, 4 at once", "4 connections"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	th, err := reports.ParseThreshold("connect.p50>50us", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := reports.CheckThresholds(d, []reports.Threshold{th}); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v, want the threshold missed", lines, err)
	}
	for i := range d.Results {
		d.Results[i].Repeat, d.Results[i].QPs, d.Results[i].Threads, connectkind.Of(&d.Results[i]).AtOnce = 1+i%2, 1, 1, 1
	}
	if got := string(text(t, d, textformat.Options{})); !strings.Contains(got, "medians of 2 repeats") {
		t.Errorf("repeats of connections:\n%s", got)
	}
}
