package reports_test

import (
	"strconv"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// A limit is the same in whatever unit it is said: just below what was measured it is kept, and
// just above it is not.
func TestLimitsAreTheSameInEveryUnit(t *testing.T) {
	const measured = 3e8 // nanoseconds, operations and bytes a second
	d := thresholdDocument()
	d.Results = d.Results[2:3]
	d.Results[0].Throughput.OperationsPerSecond, d.Results[0].Throughput.BytesPerSecond = measured, measured
	d.Results[0].Latency = latency(measured, measured)
	for metric, units := range map[string]map[string]float64{
		"p50": {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
		"rate": {"": 1, "/s": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "k/s": 1e3, "K/s": 1e3, "M/s": 1e6,
			"G/s": 1e9},
		"bw": {
			"B/s": 1, "KB/s": 1e3, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 1024, "MiB/s": 1048576,
			"GiB/s": 1073741824,
			"b/s":   0.125, "Kb/s": 125, "kb/s": 125, "Mb/s": 125e3, "Gb/s": 125e6,
		},
	} {
		for unit, size := range units {
			for part, missed := range map[float64]int{0.999: 0, 1.001: 1} {
				limit := metric + "<" + strconv.FormatFloat(part*measured/size, 'f', -1, 64) + unit
				if lines, err := reports.CheckThresholds(d, []reports.Threshold{threshold(t, limit)}); err != nil ||
					len(lines) != missed {
					t.Errorf("%s where %v was measured: %q, %v", limit, measured, lines, err)
				}
			}
		}
	}
}
