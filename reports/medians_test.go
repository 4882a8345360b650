package reports

import (
	"slices"
	"testing"
)

// The median of results has the medians of their open loops, and is saturated if one is.
func TestMediansHaveTheirLoop(t *testing.T) {
	result := func(done int64, saturated bool) *Result {
		return &Result{Operations: done, DurationNs: 2 * done, OpenLoop: &OpenLoop{Due: done + 1, Sent: done,
			Completed: done, Late: 3, OfferedPerSecond: 100, AchievedPerSecond: float64(done), Saturated: saturated}}
	}
	r := medianResult([]*Result{result(90, false), result(80, true), result(99, false)})
	if want := (OpenLoop{91, 90, 90, 3, 100, 90, true}); r.OpenLoop == nil || *r.OpenLoop != want ||
		r.Operations != 90 || r.DurationNs != 180 {
		t.Errorf("%+v of %d in %d, want %+v", r.OpenLoop, r.Operations, r.DurationNs, want)
	}
	if r := medianResult([]*Result{{Operations: 1}, {Operations: 3}}); r.OpenLoop != nil || r.Operations != 2 {
		t.Errorf("no loops: %+v of %d", r.OpenLoop, r.Operations)
	}
}

// A spread is a part of the median, and nothing where that is zero.
func TestSpreadsOfNothing(t *testing.T) {
	of := func(bw float64) *Result { return &Result{Throughput: &Throughput{BytesPerSecond: bw}} }
	for _, c := range []struct {
		all  []*Result
		want string
	}{{[]*Result{of(90), of(100), of(120)}, "BW spread 30.0 %"}, {[]*Result{of(0), of(0), of(7)}, "BW spread -"}} {
		if got := spreads(c.all); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The samples of all repeats count together, but each has to have one above the percentile.
func TestMedianOfAFigureNeedsSamplesOfAllRepeats(t *testing.T) {
	of := func(n int64, p50 float64) *Result { return &Result{Latency: &Latency{Count: n, P50: p50, P99: p50}} }
	for _, c := range []struct {
		name string
		runs []*Result
		want float64 // 0: none
	}{
		{"p50", []*Result{of(19, 7)}, 0},
		{"p50", []*Result{of(20, 7)}, 7},
		{"p50", []*Result{of(2, 7), of(2, 9), of(16, 8)}, 8},
		{"p50", []*Result{of(2, 7), of(1, 9), of(17, 8)}, 0},
		{"p99", []*Result{of(99, 7), of(901, 7)}, 0},
		{"p99", []*Result{of(100, 7), of(900, 9)}, 8},
		{"bw", []*Result{of(100, 7)}, 0},
		{"p50", nil, 0},
	} {
		if got, ok := MedianFigure(c.runs, c.name); ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%s of %d repeats: %v, %t, want %v", c.name, len(c.runs), got, ok, c.want)
		}
	}
}
