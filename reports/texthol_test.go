package reports_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// Both arms and all bulk sizes stand in one table, with what grew.
func TestHeadOfLineTable(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, size := range []int64{64 << 10, 1 << 20} {
		for i, arm := range []string{reports.ArmSameQP, reports.ArmTwoQP} {
			d.Results = append(d.Results, reports.Result{
				Stack: "iwarp(crc)", Label: reports.LabelSoft, Workload: "hol", Op: "write", SizeBytes: size, Depth: 16, QPs: 1 + i, Threads: 1,
				Polling: reports.PollingBusy, RoundTrip: reports.RoundTripFull, MeasuredBy: "client", DurationNs: 1e9, Operations: 2000, Verified: true,
				HOL: &reports.HOL{Arm: arm, BulkSizeBytes: size, ProbeSizeBytes: 64, ProbeIntervalNs: 500_000,
					ProbeAlone: *latency(2000, 15_500), ProbeLoaded: *latency(1999, float64(size)*4), BulkAloneBytesPerSecond: 2.5e9, BulkLoadedBytesPerSecond: 2.4e9},
			})
		}
	}
	closed := d.Results[3]
	h := *closed.HOL
	h.ProbeIntervalNs, h.Arm, h.ProbeAlone, h.ProbeLoaded = 0, "", *latency(0, 0), *latency(3, 900)
	closed.HOL, closed.Stack = &h, "tcp"
	d.Results = append(d.Results, closed)
	reporttest.Validate(t, encode(t, d))
	golden(t, "bench-hol.txt", bench(t, d))
	golden(t, "text-hol.txt", text(t, d, reports.TextOptions{}))
	golden(t, "text-hol-gbits.txt", text(t, d, reports.TextOptions{Gbits: true, Width: 80}))
}
