package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// A series is a table of intervals; an interval without samples has no latency.
func TestSeriesTables(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	base := reports.Result{Stack: "tcp", Label: reports.LabelSoft, Depth: 1, QPs: 1, Polling: reports.PollingBusy,
		MeasuredBy: "client",
		DurationNs: 1e9, Verified: true, Op: "write", SizeBytes: 64, Operations: 3000, Repeat: 2}
	r := base
	r.Workload, r.RoundTrip, r.Rate, r.Arrivals, r.Latency = "latency", reports.RoundTripHalf, 3000, "constant",
		latency(3000, 5000)
	r.Series = &reports.Series{IntervalNs: 250_000_000, Points: []reports.SeriesPoint{
		{Operations: 1500, P50: 5000, P99: 6000, Max: 7000}, {OffsetNs: 250_000_000},
		{OffsetNs: 500_000_000, Operations: 19, P50: 4000, P99: 4000, Max: 4001}}}
	d.Results = append(d.Results, r)
	r = base
	r.Workload, r.Repeat, r.Throughput = "throughput", 0, reports.NewThroughput(64*3000, 3000, 1e9)
	r.Series = &reports.Series{IntervalNs: 500_000_000, Points: []reports.SeriesPoint{{Operations: 1000},
		{OffsetNs: 500_000_000, Operations: 2000}}}
	d.Results = append(d.Results, r)
	r = base
	r.Workload, r.Repeat, r.RoundTrip, r.SizeBytes = "hol", 0, reports.RoundTripFull, 1<<20
	r.Detail = &probes{Arm: "two-qp", BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64, ProbeAlone: *latency(2000, 10_000),
		ProbeLoaded: *latency(2000, 90_000)}
	r.Series = &reports.Series{IntervalNs: 1_000_000_000,
		Points: []reports.SeriesPoint{{Operations: 2000, P50: 90_000, P99: 95_000, Max: 99_000}}}
	d.Results = append(d.Results, r)
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-series.txt", text(t, of(d), textformat.Options{}))
}
