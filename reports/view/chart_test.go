package view

import (
	"math"
	"strings"
	"testing"
)

func labels(ts []Tick) string {
	return strings.Join(Each(ts, func(t Tick) string { return t.Label }), " ")
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
		if got := labels(LogTicks(c.lo, c.hi, Digits3)); got != c.want {
			t.Errorf("%g to %g: ticks %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
	// A minute beside a nanosecond: labels must not crowd the axis.
	if n := len(LogTicks(1, 6e10, NsLabel)); n > 7 {
		t.Errorf("%d ticks over eleven decades", n)
	}
}

func TestLogSpanHoldsItsValuesWithRoundEnds(t *testing.T) {
	for _, c := range [][4]float64{{3, 70, 2, 100}, {10, 10, 5, 20}, {1, 999, 0.5, 2000}, {0.3, 0.4, 0.2, 0.5}} {
		lo, hi := LogSpan(c[0], c[1])
		if math.Abs(lo-c[2]) > 1e-9 || math.Abs(hi-c[3]) > 1e-9 {
			t.Errorf("%g to %g: axis from %g to %g, want %g to %g", c[0], c[1], lo, hi, c[2], c[3])
		}
	}
	if lo, hi := LogSpan(5e-324, math.MaxFloat64); lo < 1e-7 || hi > 1e19 {
		t.Errorf("absurd values give an axis from %g to %g", lo, hi)
	}
	for _, c := range [][2]float64{{math.Inf(1), math.Inf(-1)}, {0, 5}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if lo, hi := LogSpan(c[0], c[1]); lo != 1 || hi != 10 {
			t.Errorf("%v: axis from %g to %g, want the default", c, lo, hi)
		}
	}
}

func TestLinearTicksBeginAtZeroAndCover(t *testing.T) {
	for _, hi := range []float64{0.3, 1, 7, 957, 2956, 1e9, 0, 5e-324, math.NaN()} {
		ts, top := LinearTicks(hi, Digits3)
		if ts[0].At != 0 || top < hi || len(ts) < 3 || len(ts) > 7 || ts[len(ts)-1].At != top {
			t.Errorf("%g: %q up to %g", hi, labels(ts), top)
		}
	}
}

// What a peer or a file says neither moves a terminal's cursor nor turns what is read.
func TestForeignTextNeitherMovesNorTurns(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2Jb": "a?[2Jb", "\x1b]8;;http://x\x07y": "?]8;;http://x?y", "a\u202eb": "a?b", "a\u2066b\u2069": "a?b?",
		"\u200e\u200f\u061c": "???",
		"\u009b1m":           "?1m", "\x7f": "?", "a\nb\tc": "a?b?c", "\ufeffx": "?x", "\xff": "?", "größe": "größe",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Visible("a\u202eb\ufeff"); got != "ab" {
		t.Errorf("Visible = %q: what names cannot show takes no room", got)
	}
}
