package reports_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// series has repeats of a latency and a throughput: p50 and rate are the number of the repeat, in µs and in millions.
func series(n int) *reports.Document {
	d := emptyRun()
	for i := range n {
		r := point("tcp", "latency", "send", 64)
		r.Repeat, r.Operations, r.Latency = i+1, 1_000_000, latency(1_000_000, float64(i+1)*1000)
		d.Results = append(d.Results, r)
		r.Workload, r.Latency, r.Throughput = "throughput", nil,
			&reports.Throughput{BytesPerSecond: 64e6 * float64(i+1), OperationsPerSecond: 1e6 * float64(i+1)}
		d.Results = append(d.Results, r)
	}
	d.Repeats = reports.SummariseRepeats(d.Results)
	return of(d)
}

// Factors, ranks and confidence are those of printed tables (Conover, Practical Nonparametric Statistics, table A3).
func TestIntervals(t *testing.T) {
	for _, k := range []struct {
		n, rank         int // the interval is from the rank-th to the rank-th from the end
		student, covers float64
	}{{3, 1, 4.303, 0.75}, {5, 1, 2.776, 0.9375}, {6, 1, 2.571, 0.96875}, {10, 2, 2.262, 0.97852},
		{30, 10, 2.045, 0.95723}} {
		d := series(k.n)
		reporttest.Validate(t, encode(t, d))
		if len(d.Repeats) != 2 {
			t.Fatalf("%d summaries, want one of the latency and one of the throughput", len(d.Repeats))
		}
		mean := float64(k.n+1) / 2
		half := k.student * math.Sqrt(float64(k.n)*float64(k.n+1)/12) / math.Sqrt(float64(k.n))
		for i, want := range []struct {
			figure, unit, method       string
			scale, low, high, confides float64
		}{
			{"p50", "ns", "order statistics of the median", 1000, float64(k.rank), float64(k.n + 1 - k.rank), k.covers},
			{"rate", "1/s", "Student's t of the mean, held at zero", 1e6, max(mean-half, 0), mean + half, 0.95},
		} {
			s := d.Repeats[i]
			if s.N != k.n || len(s.Results) != k.n || s.Results[0] != i || s.Confidence != 0.95 || s.Absent != "" {
				t.Errorf("n=%d: summary %+v", k.n, s)
			}
			at := slices.IndexFunc(s.Figures, func(f reports.MeanInterval) bool { return f.Figure == want.figure })
			if at < 0 {
				t.Errorf("n=%d: no interval of %s in %+v", k.n, want.figure, s.Figures)
				continue
			}
			f := s.Figures[at]
			if f.Unit != want.unit || f.Method != want.method || math.Abs(f.Mean/want.scale-mean) > 1e-9 ||
				math.Abs(f.Center()/want.scale-mean) > 1e-9 ||
				math.Abs(f.High/want.scale-want.high) > 5e-4*half || math.Abs(f.Low/want.scale-want.low) > 5e-4*half ||
				math.Abs(f.Confidence-want.confides) > 1e-5 {
				t.Errorf("n=%d: %+v, want %+v", k.n, f, want)
			}
		}
	}
}

// Student's interval of a stalling machine's p99 begins at -111 us. No operation takes less than no time.
func TestIntervalsArePossibleValues(t *testing.T) {
	d := series(5)
	for i, v := range []float64{900_000, 1_000_000, 1_100_000, 1_200_000, 9_000_000} {
		l := d.Results[2*i].Latency
		l.P50, l.P99, l.Mean = v/1000, v, v/500
		d.Results[2*i+1].Throughput.OperationsPerSecond = v
	}
	for _, s := range reports.SummariseRepeats(d.Results) {
		for _, f := range s.Figures {
			if f.Low < 0 || f.Low > f.Center() || f.High < f.Center() {
				t.Errorf("%+v", f)
			}
			if f.Figure == "p99" && (f.Low != 900_000 || f.High != 9_000_000 || f.Center() != 1_100_000) {
				t.Errorf("%+v, want the repeats' own values", f)
			}
		}
	}
}

// Two repeats get no interval, and everything that could show one says why.
func TestTwoRepeatsHaveNoInterval(t *testing.T) {
	d := series(2)
	reporttest.Validate(t, encode(t, d))
	const why = "no confidence interval from 2 repeats: it takes 3"
	if len(d.Repeats) != 2 {
		t.Errorf("%d summaries, want one of the latency and one of the throughput", len(d.Repeats))
	}
	for _, s := range d.Repeats {
		if s.Figures != nil || s.Method != "" || s.Absent != why {
			t.Errorf("summary %+v, want no figures and %q", s, why)
		}
	}
	out := strings.Join(strings.Fields(string(text(t, d, textformat.Options{}))), " ")
	if lacks(t, out, "over the repeats, with"); strings.Count(out, why) != 2 {
		t.Errorf("text:\n%s", out)
	}
	if p := page(t, pages.Options{}, d); strings.Count(p, why) != 2 {
		t.Errorf("the page says it %d times, want 2", strings.Count(p, why))
	}
	if again := series(1); again.Repeats != nil {
		t.Errorf("one repeat: %+v, want nothing", again.Repeats)
	}
}

func TestThePageShowsIntervals(t *testing.T) {
	p := page(t, pages.Options{}, series(5))
	contains(t, p,
		"Over repeats, with confidence intervals (percentiles: the median&#39;s, by order statistics; others: the "+
			"mean&#39;s, by Student&#39;s t, held at zero)", "3 µs", "1 µs", "5 µs", "93.8 %", "1.04 M op/s",
		"4.96 M op/s", "95.0 %")
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
