package reports_test

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// A sweep of rates is one table, each rate beside its own other stack only, and
// each a benchmark of its own.
func TestOpenLoopTable(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, stack := range []string{"tcp", "iwarp(crc)"} {
		for i, rate := range []float64{10_000, 20_000.5} {
			d.Results = append(d.Results, reports.Result{
				Stack: stack, Label: reports.LabelSoft, Workload: "latency", Op: "send", SizeBytes: 64, Depth: 1,
				QPs:     1,
				Polling: reports.PollingBusy, RoundTrip: reports.RoundTripHalf, Rate: rate, Arrivals: "poisson",
				MeasuredBy: "client",
				DurationNs: 3e9, Operations: 30_000, Verified: true, Latency: latency(30_000, 5000*float64(i+1)),
				LatencyService: latency(30_000, 4000),
			})
		}
	}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-open.txt", text(t, d, textformat.Options{}))
	for _, want := range []string{"/rate=10000/arrivals=poisson", "/rate=20000.5/arrivals=poisson"} {
		if !strings.Contains(string(bench(t, d)), want) {
			t.Errorf("no benchmark with %q", want)
		}
	}
}
