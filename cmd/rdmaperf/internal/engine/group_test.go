package engine

import (
	"testing"
	"time"
)

// The window of several workers is from the first to begin until the last to end, in
// whatever order they are listed, and each one's share is of its own time.
func TestTheWindowOfAGroupHoldsAllItsWorkers(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		each := [3]Worker{{Begin: 500, End: 900, Ops: 1}, {Begin: 300, End: 700, Ops: 10},
			{Begin: 400, End: 1100, Ops: 100}}
		g := &Group{}
		for _, i := range order {
			g.Workers = append(g.Workers, &each[i])
		}
		o := g.collect(make([]error, 3))
		if o.Begin != 300 || o.Window != 800 || o.Ops != 111 {
			t.Errorf("order %v: from %d for %v, %d operations; want 300, 800ns, 111", order, o.Begin, o.Window, o.Ops)
		}
		for k, i := range order {
			if want := time.Duration(each[i].End - each[i].Begin); o.Shares[k].Window != want {
				t.Errorf("order %v: worker %d has a share of %v, want %v", order, i, o.Shares[k].Window, want)
			}
		}
	}
}

func TestLaterSlicesWarmUpForATenth(t *testing.T) {
	for _, c := range []struct {
		plan         Plan
		first, later Limits
	}{
		{Plan{WarmupIterations: 1000, WarmupDuration: 200 * time.Millisecond},
			Limits{1000, 200 * time.Millisecond}, Limits{100, 20 * time.Millisecond}},
		{Plan{WarmupIterations: 3}, Limits{Ops: 3}, Limits{Ops: 1}},
		{Plan{}, Limits{}, Limits{}},
	} {
		for slice, want := range []Limits{c.first, c.later} {
			m := &Measurement{Plan: &c.plan, r: &Run{slice: slice}}
			if got := m.WarmUp(); got != want {
				t.Errorf("slice %d of %+v: warm-up %+v, want %+v", slice, c.plan, got, want)
			}
		}
	}
}
