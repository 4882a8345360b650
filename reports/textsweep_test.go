package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// sweepDocument has latency and throughput of two stacks on 1, 4 and 16 QPs.
func sweepDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for i, stack := range []string{"tcp", "iwarp(crc)"} {
		for _, qps := range []int{1, 4, 16} {
			r := reports.Result{Stack: stack, Label: reports.LabelSoft, Workload: "latency", Op: "send", SizeBytes: 64,
				Depth: 1, QPs: qps, Threads: min(qps, 2),
				Polling: reports.PollingBusy, RoundTrip: reports.RoundTripHalf, MeasuredBy: "client", DurationNs: 3e9,
				Operations: 30_000, Verified: true,
				Latency: latency(30_000, float64(4000*(i+1)+100*qps))}
			d.Results = append(d.Results, r)
			r.Workload, r.Op, r.RoundTrip, r.Latency, r.Depth = "throughput", "write", "", nil, 16
			r.Throughput = &reports.Throughput{BytesPerSecond: float64(qps) * 1e8,
				OperationsPerSecond: float64(qps) * 1e6}
			d.Results = append(d.Results, r)
		}
	}
	return of(d)
}

// A sweep over QPs is one table a stack and workload, and one chart each.
func TestConnectionSweep(t *testing.T) {
	d := sweepDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-sweep.txt", text(t, d, textformat.Options{}))
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="connections"`, "latency by connections: Latency send",
		"throughput by connections: Throughput write", "16 QPs"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	d.Results = d.Results[:2]
	page.Reset()
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), `id="connections"`) {
		t.Error("one number of QPs is drawn as a sweep")
	}
}
