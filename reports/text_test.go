package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// A sweep of rates is one table, each rate beside its own other stack only, and each a benchmark of its own.
func TestOpenLoopTable(t *testing.T) {
	d := emptyRun()
	for _, stack := range []string{"tcp", "iwarp(crc)"} {
		for i, rate := range []float64{10_000, 20_000.5} {
			r := point(stack, "latency", "send", 64)
			r.RoundTrip, r.Rate, r.Arrivals = reports.RoundTripHalf, rate, "poisson"
			r.DurationNs, r.Operations, r.Latency = 3e9, 30_000, latency(30_000, 5000*float64(i+1))
			r.LatencyService = latency(30_000, 4000)
			d.Results = append(d.Results, r)
		}
	}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-open.txt", text(t, d, textformat.Options{}))
	contains(t, string(bench(t, d)), "/rate=10000/arrivals=poisson", "/rate=20000.5/arrivals=poisson")
}

// Repeats are one row of medians with the true extremes, and their spread; one repeat alone has none.
func TestRepeatsAreOneRow(t *testing.T) {
	d := emptyRun()
	for i, p50 := range []float64{5000, 4000, 9000} {
		r := point("tcp", "latency", "write", 64)
		r.Repeat, r.RoundTrip, r.Operations = i+1, reports.RoundTripHalf, 200_000
		r.Latency, r.LatencyCorrected = latency(200_000-int64(i), p50), latency(200_000, p50+10)
		d.Results = append(d.Results, r)
		r = point("tcp", "throughput", "write", 4096)
		r.Repeat, r.Operations = i+1, 1000
		r.Throughput = &reports.Throughput{BytesPerSecond: float64(1+i) * (1 << 30), OperationsPerSecond: 1e6}
		d.Results = append(d.Results, r)
		r = point("tcp", "hol", "write", 1<<20)
		r.Repeat, r.RoundTrip, r.Operations = i+1, reports.RoundTripFull, 1000
		r.Detail = &probes{Arm: "same-qp", BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64,
			ProbeAlone:  *latency(2000, 10_000),
			ProbeLoaded: *latency(2000, p50*100), BulkAloneBytesPerSecond: 2e9, BulkLoadedBytesPerSecond: 1e9}
		d.Results = append(d.Results, r)
	}
	open := point("tcp", "latency", "write", 8)
	open.Repeat, open.RoundTrip, open.Rate, open.Arrivals = 1, reports.RoundTripHalf, 100, "constant"
	open.Latency, open.Operations = latency(2000, 7000), 2000
	d.Results = append(d.Results, open)
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-repeat.txt", text(t, of(d), textformat.Options{}))
}

// A series is a table of intervals; an interval without samples has no latency.
func TestSeriesTables(t *testing.T) {
	d := emptyRun()
	r := point("tcp", "latency", "write", 64)
	r.Operations, r.Repeat, r.RoundTrip, r.Rate, r.Arrivals, r.Latency = 3000, 2, reports.RoundTripHalf, 3000, "constant",
		latency(3000, 5000)
	r.Series = &reports.Series{IntervalNs: 250_000_000, Points: []reports.SeriesPoint{
		{Operations: 1500, P50: 5000, P99: 6000, Max: 7000}, {OffsetNs: 250_000_000},
		{OffsetNs: 500_000_000, Operations: 19, P50: 4000, P99: 4000, Max: 4001}}}
	d.Results = append(d.Results, r)
	r = point("tcp", "throughput", "write", 64)
	r.Operations, r.Throughput = 3000, reports.NewThroughput(64*3000, 3000, 1e9)
	r.Series = &reports.Series{IntervalNs: 500_000_000, Points: []reports.SeriesPoint{{Operations: 1000},
		{OffsetNs: 500_000_000, Operations: 2000}}}
	d.Results = append(d.Results, r)
	r = point("tcp", "hol", "write", 1<<20)
	r.Operations, r.RoundTrip = 3000, reports.RoundTripFull
	r.Detail = &probes{Arm: "two-qp", BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64, ProbeAlone: *latency(2000, 10_000),
		ProbeLoaded: *latency(2000, 90_000)}
	r.Series = &reports.Series{IntervalNs: 1_000_000_000,
		Points: []reports.SeriesPoint{{Operations: 2000, P50: 90_000, P99: 95_000, Max: 99_000}}}
	d.Results = append(d.Results, r)
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-series.txt", text(t, of(d), textformat.Options{}))
}

// A sweep over QPs is one table a stack and workload, and one chart each.
func TestConnectionSweep(t *testing.T) {
	d := emptyRun()
	for i, stack := range []string{"tcp", "iwarp(crc)"} {
		for _, qps := range []int{1, 4, 16} {
			r := point(stack, "latency", "send", 64)
			r.QPs, r.Threads, r.RoundTrip, r.DurationNs, r.Operations = qps, min(qps, 2), reports.RoundTripHalf, 3e9, 30_000
			r.Latency = latency(30_000, float64(4000*(i+1)+100*qps))
			d.Results = append(d.Results, r)
			r.Workload, r.Op, r.RoundTrip, r.Latency, r.Depth = "throughput", "write", "", nil, 16
			r.Throughput = &reports.Throughput{BytesPerSecond: float64(qps) * 1e8, OperationsPerSecond: float64(qps) * 1e6}
			d.Results = append(d.Results, r)
		}
	}
	of(d)
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-sweep.txt", text(t, d, textformat.Options{}))
	p := page(t, pages.Options{}, d)
	contains(t, p, `id="connections"`, "latency by connections: Latency send",
		"throughput by connections: Throughput write", "16 QPs")
	d.Results = d.Results[:2]
	lacks(t, page(t, pages.Options{}, d), `id="connections"`)
}
