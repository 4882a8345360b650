package charts

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

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

// The curve of 1..1000 µs passes through each percentile, and marks what has few samples beyond it.
func TestPercentileCurve(t *testing.T) {
	r := reports.NewRecorder()
	for i := range int64(1000) {
		r.Record((i + 1) * 1000)
	}
	l := r.Snapshot()
	s := PercentileCurve(&reports.BySeries{Series: "x"}, "", false, []*reports.Latency{&l})
	for i, p := range s.Points {
		if i > 0 && (p.X < s.Points[i-1].X || p.Y < s.Points[i-1].Y) {
			t.Fatalf("point %d falls back: %+v after %+v", i, p, s.Points[i-1])
		}
		if p.Few != (p.X > 100) {
			t.Errorf("point at 1/%g: few is %v", p.X, p.Few)
		}
		if want := 1e6 * (1 - 1/p.X); p.X > 1 && p.X < 500 && math.Abs(p.Y-want) > 0.004*1e6 {
			t.Errorf("at 1/%g: %g ns, want about %g", p.X, p.Y, want)
		}
	}
	last := s.Points[len(s.Points)-1]
	named := slices.ContainsFunc(s.Points, func(p view.Point) bool {
		return p.Y == 1e6 && strings.Contains(p.Tip, "maximum of 1000 samples")
	})
	if last.Y != 1e6 || last.X != 2000 || !named {
		t.Errorf("the curve ends at %+v, want the maximum", last)
	}
	// Twice the same run is the same distribution.
	twice := PercentileCurve(&reports.BySeries{Series: "x"}, "", false, []*reports.Latency{&l, &l})
	if p50 := twice.Points[slices.IndexFunc(twice.Points, func(p view.Point) bool { return p.Tip != "" })]; math.Abs(
		p50.Y-5e5) > 1000 {
		t.Errorf("pooled median %g ns, want 500000", p50.Y)
	}
}
