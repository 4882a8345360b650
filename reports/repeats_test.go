package reports_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// series has one latency and one throughput point with so many repeats: p50 and
// rate are the number of the repeat, in µs and in millions.
func series(n int) *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for i := range n {
		r := reports.Result{Stack: "tcp", Label: reports.LabelSoft, Workload: "latency", Op: "send", SizeBytes: 64, Depth: 1, QPs: 1, Repeat: i + 1,
			Operations: 1_000_000, DurationNs: 1e9, Latency: latency(1_000_000, float64(i+1)*1000)}
		d.Results = append(d.Results, r)
		r.Workload, r.Latency, r.Throughput = "throughput", nil, &reports.Throughput{BytesPerSecond: 64e6 * float64(i+1), OperationsPerSecond: 1e6 * float64(i+1)}
		d.Results = append(d.Results, r)
	}
	d.Repeats = reports.SummariseRepeats(d.Results)
	return d
}

// The half width is t(0.975, n-1) times the deviation over the root of n; the
// factors are those of printed tables, and the deviation of 1..n is known.
func TestIntervalsAreStudents(t *testing.T) {
	for n, factor := range map[int]float64{3: 4.303, 5: 2.776, 10: 2.262, 30: 2.045} {
		d := series(n)
		reporttest.Validate(t, encode(t, d))
		if len(d.Repeats) != 2 {
			t.Fatalf("%d summaries, want one of the latency and one of the throughput", len(d.Repeats))
		}
		mean := float64(n+1) / 2
		half := factor * math.Sqrt(float64(n)*float64(n+1)/12) / math.Sqrt(float64(n))
		for i, want := range []struct {
			figure, unit string
			scale        float64
		}{{"p50", "ns", 1000}, {"rate", "1/s", 1e6}} {
			s := d.Repeats[i]
			if s.N != n || len(s.Results) != n || s.Results[0] != i || s.Confidence != 0.95 || !strings.Contains(s.Method, "Student") || s.Absent != "" {
				t.Errorf("n=%d: summary %+v", n, s)
			}
			found := false
			for _, f := range s.Figures {
				if f.Figure != want.figure {
					continue
				}
				found = true
				if f.Unit != want.unit || math.Abs(f.Mean/want.scale-mean) > 1e-9 ||
					math.Abs((f.High-f.Mean)/want.scale-half) > 5e-4*half || math.Abs((f.Mean-f.Low)/want.scale-half) > 5e-4*half {
					t.Errorf("n=%d: %+v, want %v +/- %v in %s", n, f, mean*want.scale, half*want.scale, want.unit)
				}
			}
			if !found {
				t.Errorf("n=%d: no interval of %s in %+v", n, want.figure, s.Figures)
			}
		}
	}
}

// Two repeats get no interval, and everything that could show one says why.
func TestTwoRepeatsHaveNoInterval(t *testing.T) {
	d := series(2)
	reporttest.Validate(t, encode(t, d))
	const why = "no confidence interval from 2 repeats: it takes 3"
	for _, s := range d.Repeats {
		if s.Figures != nil || s.Method != "" || s.Absent != why {
			t.Errorf("summary %+v, want no figures and %q", s, why)
		}
	}
	if out := strings.Join(strings.Fields(string(text(t, d, reports.TextOptions{}))), " "); strings.Count(out, why) != 2 || strings.Contains(out, "mean over") {
		t.Errorf("text:\n%s", out)
	}
	if p := page(t, reports.HTMLOptions{}, d); strings.Count(p, why) != 2 {
		t.Errorf("the page says it %d times, want 2", strings.Count(p, why))
	}
	if again := series(1); again.Repeats != nil {
		t.Errorf("one repeat: %+v, want nothing", again.Repeats)
	}
}

func TestThePageShowsIntervals(t *testing.T) {
	p := page(t, reports.HTMLOptions{}, series(5))
	for _, want := range []string{"mean over repeats with its 95 % confidence interval (Student&#39;s t, two-sided)", "3 µs", "1.04 µs", "4.96 µs", "65.4 %", "3 M op/s"} {
		if !strings.Contains(p, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A figure that one repeat lacks is no figure of all of them.
func TestAnIntervalNeedsEveryRepeat(t *testing.T) {
	d := series(4)
	d.Results[2].Latency = &reports.Latency{}
	for _, s := range reports.SummariseRepeats(d.Results) {
		if s.Workload == "latency" && len(s.Figures) > 0 {
			t.Errorf("figures %+v of repeats of which one has no samples", s.Figures)
		}
	}
}
