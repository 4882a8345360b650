package reports_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	incastkind "github.com/rdmaperf/rdmaperf/reports/kinds/incast"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func TestJainIndex(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{5, 5, 5}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}, {[]float64{0, 0}, 0}, {nil, 0},
		{[]float64{1e300, 1e300}, 1},
	} {
		if got := incastkind.JainIndex(c.rates); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain index of %v = %v, want %v", c.rates, got, c.want)
		}
	}
}

// incastDocument is a sweep of clients to one server.
func incastDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, n := range []int{2, 8} {
		in := &incastkind.Incast{Clients: n}
		var rates []float64
		for i := range n {
			rate := 1e9 / float64(n) * (1 + 0.1*float64(i))
			rates = append(rates, rate)
			in.PerClient = append(in.PerClient, incastkind.ClientShare{Operations: 1000, DurationNs: 3e9, BytesPerSecond: rate})
		}
		in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain = rates[0], rates[n-1], incastkind.JainIndex(rates)
		d.Results = append(d.Results, reports.Result{
			Stack: "iwarp(crc)", Label: reports.LabelSoft, Workload: "incast", Op: "write", SizeBytes: 65536, Depth: 16, QPs: n, Threads: n,
			Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 3e9, Operations: int64(1000 * n), Verified: true,
			Throughput: &reports.Throughput{BytesPerSecond: 1e9, OperationsPerSecond: 1e9 / 65536}, Kind: kind("incast"), Detail: in,
		})
	}
	return of(d)
}

// The clients' shares stand below the aggregate, in every format.
func TestIncast(t *testing.T) {
	d := incastDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-incast.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, "BenchmarkIncast/op=write") || !strings.Contains(b, " jain\n") {
		t.Errorf("no benchmark of an incast:\n%s", b)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="connections"`, "Clients", "8 clients", "Jain index"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	repeated := incastDocument()
	for i := range 3 {
		r := repeated.Results[0]
		r.Repeat = i + 1
		repeated.Results = append(repeated.Results, r)
	}
	repeated.Results = repeated.Results[2:]
	repeated.Repeats = reports.SummariseRepeats(repeated.Results)
	reporttest.Validate(t, encode(t, repeated))
	if got := string(text(t, repeated, textformat.Options{})); !strings.Contains(got, "0.9977") || !strings.Contains(got, "medians of 3 repeats") {
		t.Errorf("repeats of an incast:\n%s", got)
	}
	jain, err := reports.ParseThreshold("jain<0.99", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := reports.CheckThresholds(d, []reports.Threshold{jain}); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v, want the threshold missed", lines, err)
	}
}
