package reports_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/reports"
)

func threshold(t testing.TB, s string) reports.Threshold {
	t.Helper()
	return must(reports.ParseThreshold(s, workloads))(t)
}

// failures are the lines of what fails.
func failures(t testing.TB, d *reports.Document, thresholds ...reports.Threshold) []string {
	t.Helper()
	return must(reports.CheckThresholds(d, thresholds))(t)
}

func thresholdDocument() *reports.Document {
	d := goldenDocument()
	d.Results = []reports.Result{d.Results[0], d.Results[2], d.Results[5], d.Results[7]}
	hol := d.Results[0]
	hol.Workload, hol.Latency, hol.Throughput = "hol", nil, nil
	hol.LatencyService = latency(1000, 2000)
	hol.Detail = &probes{ProbeAlone: *latency(1000, 4000), ProbeLoaded: *latency(1000, 900_000),
		BulkAloneBytesPerSecond: 1e9, BulkLoadedBytesPerSecond: 2.5e8}
	d.Results = append(d.Results, hol)
	return of(d)
}

// The limits on both sides of a value: what is equal to the limit is kept.
func TestThresholdsAgainstADocument(t *testing.T) {
	for _, c := range []struct{ threshold, want string }{
		{"p99>6.45us", ""}, // the iwarp result has exactly 6450 ns
		{"p99>6449ns", "failed: p99 6.450us, limit: fail if >6449ns (iwarp latency send 64, 1 of 2 results)"},
		{" p99 > 5us ", "failed: p99 6.450us, limit: fail if >5us (iwarp latency send 64, 2 of 2 results)"},
		{"p50<3900ns", ""},
		{"p50<4µs", "failed: p50 3.900us, limit: fail if <4µs (tcp latency send 64, 1 of 2 results)"},
		{"p99.9>17.2us", ""},
		{"p999>17us", "failed: p999 17.200us, limit: fail if >17us (iwarp latency send 64, 1 of 2 results)"},
		{"max>0.4ms", "failed: max 430.000us, limit: fail if >0.4ms (iwarp latency send 64, 1 of 2 results)"},
		{"max>1s", ""},
		{"corrected.p99.9>1ms", "failed: corrected.p99.9 4.990ms, limit: fail if >1ms (iwarp latency send 64, 1 of 1 result)"},
		{"loaded.p99>1ms", "failed: loaded.p99 1.350ms, limit: fail if >1ms (tcp hol send 64, 1 of 1 result)"},
		{"alone.p99>1ms", ""},
		{"service.p50<3us", "failed: service.p50 2.000us, limit: fail if <3us (tcp hol send 64, 1 of 1 result)"},
		{"rate<5k", ""},
		{"rate<5.5k/s", "failed: rate 5.000k/s, limit: fail if <5.5k/s (iwarp throughput write 1M, 1 of 4 results)"},
		{"bw<1GB/s", "failed: bw 10.173MiB/s, limit: fail if <1GB/s (iwarp latency send 64, 2 of 4 results)"},
		{"bw<0.085333Gb/s", ""},
		{"bw<0.085334Gb/s", "failed: bw 10.173MiB/s, limit: fail if <0.085334Gb/s (iwarp latency send 64, 1 of 4 results)"},
		{"bw<10MiB/s", ""},
		{"loaded.bw<1GB/s", "failed: loaded.bw 238.419MiB/s, limit: fail if <1GB/s (tcp hol send 64, 1 of 1 result)"},
		{"alone.bw<1GB/s", ""},
		{"errors>0", "failed: errors 3, limit: fail if >0 (iwarp throughput write 1M, 1 of 5 results)"},
		{"errors>3", ""},
	} {
		if got := strings.Join(failures(t, thresholdDocument(), threshold(t, c.threshold)), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.threshold, got, c.want)
		}
	}
}

// Names of other tools and letters of any case name the same metric, and an expected condition fails where it does not
// hold.
func TestThresholdsInOtherWords(t *testing.T) {
	for _, c := range []struct {
		condition    string
		fails, wants bool // as --fail-if and as --expect
	}{
		{"P50>3us", true, false}, {"avg>1s", false, true}, {"Bandwidth>1B/s", true, false},
		{"errors>=3", true, true}, // of several results some fail either way
		{"max<=430us", true, false}, {"loaded.AVG>1s", false, true},
	} {
		th := threshold(t, c.condition)
		for _, of := range []struct {
			th    reports.Threshold
			fails bool
		}{{th, c.fails}, {th.Expected(), c.wants}} {
			if lines := failures(t, thresholdDocument(), of.th); (len(lines) > 0) != of.fails {
				t.Errorf("%s: %q, want failed %v", c.condition, lines, of.fails)
			}
		}
	}
	lines := failures(t, thresholdDocument(), threshold(t, "p99<5ms"), threshold(t, "p99 < 5us").Expected())
	want := []string{"failed: p99 5.850us, limit: fail if <5ms (tcp latency send 64, 2 of 2 results)",
		"failed: p99 6.450us, expected <5us (iwarp latency send 64, 2 of 2 results)"}
	same(t, "lines", want, lines)
}

// interval. is of the worst interval, without those in which nothing ended.
func TestThresholdsOfTheWorstInterval(t *testing.T) {
	d := thresholdDocument()
	d.Results[0].Series = &reports.Series{IntervalNs: 1e9, Points: []reports.SeriesPoint{
		{Operations: 100, P50: 2000, P99: 9000, Max: 10_000}, {Operations: 50, P50: 1000, P99: 20_000, Max: 30_000}, {}}}
	lines := failures(t, d, threshold(t, "interval.p99>15us"), threshold(t, "interval.p50>3us"),
		threshold(t, "interval.rate>=1").Expected())
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "failed: interval.p99 20.000us, limit") ||
		!strings.HasPrefix(lines[1], "failed: interval.rate 0.000/s, expected >=1") {
		t.Errorf("%q", lines)
	}
	d.Results[0].Series.Points = d.Results[0].Series.Points[:2] // 100 and 50 messages of 64 bytes in a second
	d.Results[0].Throughput = reports.NewThroughput(64*d.Results[0].Operations, d.Results[0].Operations, 1e9)
	lines = failures(t, d, threshold(t, "interval.bandwidth.min<4KB/s"), threshold(t, "interval.bw<3KB/s"))
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "failed: interval.bandwidth.min 3.125KiB/s, limit") {
		t.Errorf("%q", lines)
	}
}

// A threshold that nothing was measured for is no threshold that was kept.
func TestThresholdWithoutAFigureIsMissed(t *testing.T) {
	d := thresholdDocument()
	d.Results = d.Results[2:3] // throughput only
	lines := failures(t, d, threshold(t, "p99>1s"), threshold(t, "rate<1"), threshold(t, "loaded.max>1s"))
	want := []string{"failed: no result has a p99, limit: fail if >1s",
		"failed: no result has a loaded.max, limit: fail if >1s"}
	same(t, "lines", want, lines)
	d = thresholdDocument()
	d.Results[0].Latency.P99 = math.NaN()
	if lines := failures(t, d, threshold(t, "p99>1s")); len(lines) != 1 {
		t.Errorf("NaN keeps a threshold: %q", lines)
	}
}

func TestRelativeThresholdNeedsTwoRuns(t *testing.T) {
	threshold(t, "p50<-100%") // the largest fall
	th := threshold(t, "p99>+10%")
	if !th.Relative() || threshold(t, "p99>10us").Relative() {
		t.Error("Relative is wrong")
	}
	if _, err := reports.CheckThresholds(thresholdDocument(), []reports.Threshold{th}); !errors.Is(err,
		reports.ErrRelative) {
		t.Errorf("error = %v, want ErrRelative", err)
	}
}

func TestParseThresholdErrors(t *testing.T) {
	for _, c := range []struct{ threshold, want string }{
		{"", "want METRIC>LIMIT"},
		{"p99", "want METRIC>LIMIT"},
		{"p99=10us", "want METRIC>LIMIT"},
		{">10us", "unknown metric"},
		{"p98>10us", `unknown metric "p98"`},
		{"p99.>10us", "unknown metric"},
		{"p99.8>10us", "unknown metric"},
		{"bulk.p99>10us", "unknown metric"},
		{"p99>", "want a limit"},
		{"p99>us", "want a limit"},
		{"p99>=", "want a limit"},
		{"interval.p90>1us", "unknown metric"},
		{"p99>10", "needs a unit"},
		{"p99>10M", `unknown unit "M"`},
		{"p99>10 us", `unknown unit " us"`},
		{"p99>1.2.3us", "no number"},
		{"p99>1e5us", "unknown unit"},
		{"p99>-5us", "only a change"},
		{"p99>+5us", "only a change"},
		{"p99>10%", "needs its sign"},
		{"p99<-101%", "100%"},
		{"rate<3MB/s", "unknown unit"},
		{"bw<1GB", "unknown unit"},
		{"bw<1", "needs a unit"},
		{"errors>1us", "unknown unit"},
		{"p99>" + strings.Repeat("9", 400) + "us", "no number"},
		{"p99>1" + strings.Repeat("0", 305) + "s", "too large"},
	} {
		_, err := reports.ParseThreshold(c.threshold, workloads)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "threshold ") {
			t.Errorf("%q: error %v, want one with %q", c.threshold, err, c.want)
		}
	}
}

// A limit is the same in whatever unit it is said: just below what was measured it is kept, and just above it is not.
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
				if lines := failures(t, d, threshold(t, limit)); len(lines) != missed {
					t.Errorf("%s where %v was measured: %q", limit, measured, lines)
				}
			}
		}
	}
}

// What parses prints itself so that it parses to the same.
func FuzzParseThreshold(f *testing.F) {
	for _, s := range []string{"p99>10us", "p99>+10%", "rate<3M", "bw<1GB/s", "corrected.p99.9>1ms", "errors>0",
		"p99>1e9s", "p99.>1us", " p50 < 1µs", "max>.s", "\x00>\xff"} {
		f.Add(s)
	}
	d := thresholdDocument()
	f.Fuzz(func(t *testing.T, s string) {
		a, err := reports.ParseThreshold(s, workloads)
		if err != nil {
			return
		}
		b, err := reports.ParseThreshold(a.String(), workloads)
		if err != nil || a.String() != b.String() || a.Relative() != b.Relative() {
			t.Fatalf("%q prints as %q, which reads as %q, error %v", s, a, b, err)
		}
		x, errX := reports.CheckThresholds(d, []reports.Threshold{a})
		y, errY := reports.CheckThresholds(d, []reports.Threshold{b})
		if (errX != nil) != a.Relative() || (errY != nil) != a.Relative() || cmp.Diff(x, y) != "" {
			t.Errorf("%q and %q judge differently: %q %v, %q %v", s, b, x, errX, y, errY)
		}
	})
}
