package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// Repeats are one row of medians with the true extremes, and their spread; one
// repeat alone has none.
func TestRepeatsAreOneRow(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	base := reports.Result{Stack: "tcp", Label: reports.LabelSoft, Depth: 1, QPs: 1, Polling: reports.PollingBusy,
		MeasuredBy: "client",
		DurationNs: 1e9, Verified: true, Op: "write"}
	for i, p50 := range []float64{5000, 4000, 9000} {
		r := base
		r.Repeat, r.Workload, r.SizeBytes, r.RoundTrip, r.Operations = i+1, "latency", 64, reports.RoundTripHalf,
			200_000
		r.Latency, r.LatencyCorrected = latency(200_000-int64(i), p50), latency(200_000, p50+10)
		d.Results = append(d.Results, r)
		r = base
		r.Repeat, r.Workload, r.SizeBytes, r.Operations = i+1, "throughput", 4096, 1000
		r.Throughput = &reports.Throughput{BytesPerSecond: float64(1+i) * (1 << 30), OperationsPerSecond: 1e6}
		d.Results = append(d.Results, r)
		r = base
		r.Repeat, r.Workload, r.SizeBytes, r.RoundTrip, r.Operations = i+1, "hol", 1<<20, reports.RoundTripFull, 1000
		r.Detail = &probes{Arm: "same-qp", BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64,
			ProbeAlone:  *latency(2000, 10_000),
			ProbeLoaded: *latency(2000, p50*100), BulkAloneBytesPerSecond: 2e9, BulkLoadedBytesPerSecond: 1e9}
		d.Results = append(d.Results, r)
	}
	open := base
	open.Repeat, open.Workload, open.SizeBytes, open.RoundTrip, open.Rate, open.Arrivals = 1, "latency", 8,
		reports.RoundTripHalf, 100, "constant"
	open.Latency, open.Operations = latency(2000, 7000), 2000
	d.Results = append(d.Results, open)
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-repeat.txt", text(t, of(d), textformat.Options{}))
}
