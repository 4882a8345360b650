package html

import (
	"math"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

func TestLinesBreakBetweenParameters(t *testing.T) {
	for in, want := range map[string]string{
		"sched(drr,slice=16K)+iwarp(crc) is fastest, <b>": "sched(drr,<wbr/>slice=16K)<wbr/>+iwarp(crc) is fastest, " +
			"&lt;b&gt;",
		"": "",
	} {
		if got := breakable(in); string(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestScaleKeepsItsEnds(t *testing.T) {
	s := axis{view.Scale{Log: true, Lo: 1, Hi: 100}, 10, 30}
	for _, c := range [][2]float64{{1, 10}, {10, 20}, {100, 30}, {0.01, 10}, {1e9, 30}} {
		if got := s.pos(c[0]); math.Abs(got-c[1]) > 1e-9 {
			t.Errorf("%g stands at %g, want %g", c[0], got, c[1])
		}
	}
	if got := (axis{view.Scale{Lo: 5, Hi: 5}, 0, 10}).pos(5); got != 5 {
		t.Errorf("an axis without length puts its value at %g, want the middle", got)
	}
}

// Whoever cannot tell colours apart has the marker and the dash.
func TestEverySeriesHasAMarkerOfItsOwn(t *testing.T) {
	var seen []string
	for i := range view.Slots {
		m := marker(i, 0, 0, 4)
		if slices.Contains(seen, m) {
			t.Errorf("series %d looks like another", i)
		}
		seen = append(seen, m)
	}
}
