package run

import (
	"testing"
	"time"
)

// A group that is late takes time from those behind it, in proportion to what they planned.
func TestALateRunSharesTheTimeThatIsLeft(t *testing.T) {
	now := time.Now()
	s := schedule{end: now.Add(40 * time.Second),
		shares: []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second}}
	for _, k := range []struct {
		group      int
		late, want time.Duration
	}{{0, 0, 10 * time.Second}, {1, 10 * time.Second, 20 * time.Second}, {1, 16 * time.Second, 24 * time.Second},
		{2, 30 * time.Second, 40 * time.Second}} {
		if got := s.until(k.group, now.Add(k.late)).Sub(now); (got - k.want).Abs() > time.Millisecond {
			t.Errorf("group %d, which begins after %v: until %v, want %v", k.group, k.late, got, k.want)
		}
	}
}

// Rounds are left out where the next one would end too late, and never more than the intervals need.
func TestRoundsAreLeftOutWhereTheyWouldEndTooLate(t *testing.T) {
	began := time.Now()
	for _, k := range []struct {
		least, done int
		took        time.Duration
		want        bool
	}{
		{11, 12, 6 * time.Second, false}, // 0.5 s each, of 7 s
		{11, 12, 6600 * time.Millisecond, true},
		{11, 10, 20 * time.Second, false}, // too few
		{0, 12, 20 * time.Second, false},  // a number of rounds that was asked for
	} {
		m := &runner{least: k.least}
		if got := m.enough(k.done, began, began.Add(k.took), began.Add(7*time.Second)); got != k.want {
			t.Errorf("%d of at least %d rounds in %v: enough %v", k.done, k.least, k.took, got)
		}
	}
}
