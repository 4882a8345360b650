package engine

import (
	"testing"
	"time"
)

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
