package reports

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func labels(ts []tick) string {
	var out []string
	for _, t := range ts {
		out = append(out, t.label)
	}
	return strings.Join(out, " ")
}

func TestLogTicksAreDecadesAndStepsWhereThereIsRoom(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{1, 1e6, "1 10 100 1000 10\u202f000 100\u202f000 1\u202f000\u202f000"},
		{2, 20, "2 5 10 20"},
		{5, 500, "10 30 100 300"},
		{0.5, 5, "0.5 1 2 5"},
	} {
		if got := labels(logTicks(c.lo, c.hi, digits3)); got != c.want {
			t.Errorf("%g to %g: ticks %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	// A minute beside a nanosecond: labels must not crowd the axis.
	if n := len(logTicks(1, 6e10, nsLabel)); n > 7 {
		t.Errorf("%d ticks over eleven decades", n)
	}
}

func TestLogSpanHoldsItsValuesWithRoundEnds(t *testing.T) {
	for _, c := range [][4]float64{{3, 70, 2, 100}, {10, 10, 5, 20}, {1, 999, 0.5, 2000}, {0.3, 0.4, 0.2, 0.5}} {
		lo, hi := logSpan(c[0], c[1])
		if math.Abs(lo-c[2]) > 1e-9 || math.Abs(hi-c[3]) > 1e-9 {
			t.Errorf("%g to %g: axis from %g to %g, want %g to %g", c[0], c[1], lo, hi, c[2], c[3])
		}
	}
	if lo, hi := logSpan(5e-324, math.MaxFloat64); lo < 1e-7 || hi > 1e19 {
		t.Errorf("absurd values give an axis from %g to %g", lo, hi)
	}
	for _, c := range [][2]float64{{math.Inf(1), math.Inf(-1)}, {0, 5}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if lo, hi := logSpan(c[0], c[1]); lo != 1 || hi != 10 {
			t.Errorf("%v: axis from %g to %g, want the default", c, lo, hi)
		}
	}
}

func TestLinearTicksBeginAtZeroAndCover(t *testing.T) {
	for _, hi := range []float64{0.3, 1, 7, 957, 2956, 1e9, 0, 5e-324, math.NaN()} {
		ts, top := linearTicks(hi, digits3)
		if ts[0].at != 0 || top < hi || len(ts) < 3 || len(ts) > 7 || ts[len(ts)-1].at != top {
			t.Errorf("%g: %q up to %g", hi, labels(ts), top)
		}
	}
}

func TestScaleKeepsItsEnds(t *testing.T) {
	s := scale{log: true, lo: 1, hi: 100, from: 10, to: 30}
	for _, c := range [][2]float64{{1, 10}, {10, 20}, {100, 30}, {0.01, 10}, {1e9, 30}} {
		if got := s.pos(c[0]); math.Abs(got-c[1]) > 1e-9 {
			t.Errorf("%g stands at %g, want %g", c[0], got, c[1])
		}
	}
	if got := (scale{lo: 5, hi: 5, from: 0, to: 10}).pos(5); got != 5 {
		t.Errorf("an axis without length puts its value at %g, want the middle", got)
	}
}

func TestLabelsSayTheUnit(t *testing.T) {
	for want, got := range map[string]string{
		"850 ns": nsLabel(850), "3.57 µs": nsLabel(3566), "1 µs": nsLabel(999.7), "64.8 ms": nsLabel(64_836_570), "2 s": nsLabel(2e9), "-": nsLabel(math.NaN()),
		"64 B": sizeLabel(64), "1 KiB": sizeLabel(1024), "1000 B": sizeLabel(1000), "16 MiB": sizeLabel(16 << 20),
		"1.5 M op/s": rateLabel(1.5e6), "20 k op/s": rateLabel(20_000), "500 op/s": rateLabel(500), "953 MiB/s": bandwidthLabel(999_292_928),
	} {
		if got != want {
			t.Errorf("label %q, want %q", got, want)
		}
	}
}

// Whoever cannot tell colours apart has the marker and the dash.
func TestEverySeriesHasAMarkerOfItsOwn(t *testing.T) {
	var seen []string
	for i := range slots {
		m := marker(i, 0, 0, 4)
		if slices.Contains(seen, m) {
			t.Errorf("series %d looks like another", i)
		}
		seen = append(seen, m)
	}
}

func TestSpreadKeepsTheEnds(t *testing.T) {
	var sizes []int64
	for i := range int64(23) {
		sizes = append(sizes, 2<<i)
	}
	got := spread(sizes, 6)
	if len(got) != 6 || got[0] != sizes[0] || got[5] != sizes[22] || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
	if got := spread(sizes[:3], 6); !slices.Equal(got, sizes[:3]) {
		t.Errorf("%v", got)
	}
}

// The curve of 1..1000 µs passes through each percentile at its place, and what
// has fewer than ten samples beyond it is marked.
func TestPercentileCurve(t *testing.T) {
	r := NewRecorder()
	for i := range int64(1000) {
		r.Record((i + 1) * 1000)
	}
	l := r.Snapshot()
	s := percentileCurve(&bySeries{series: "x"}, "", false, []*Latency{&l})
	for i, p := range s.points {
		if i > 0 && (p.x < s.points[i-1].x || p.y < s.points[i-1].y) {
			t.Fatalf("point %d falls back: %+v after %+v", i, p, s.points[i-1])
		}
		if p.few != (p.x > 100) {
			t.Errorf("point at 1/%g: few is %v", p.x, p.few)
		}
		if want := 1e6 * (1 - 1/p.x); p.x > 1 && p.x < 500 && math.Abs(p.y-want) > 0.004*1e6 {
			t.Errorf("at 1/%g: %g ns, want about %g", p.x, p.y, want)
		}
	}
	last := s.points[len(s.points)-1]
	named := slices.ContainsFunc(s.points, func(p point) bool { return p.y == 1e6 && strings.Contains(p.tip, "maximum of 1000 samples") })
	if last.y != 1e6 || last.x != 2000 || !named {
		t.Errorf("the curve ends at %+v, want the maximum", last)
	}
	// Twice the same run is the same distribution.
	twice := percentileCurve(&bySeries{series: "x"}, "", false, []*Latency{&l, &l})
	if p50 := twice.points[slices.IndexFunc(twice.points, func(p point) bool { return p.tip != "" })]; math.Abs(p50.y-5e5) > 1000 {
		t.Errorf("pooled median %g ns, want 500000", p50.y)
	}
}
