package sched

import "testing"

// Who alone is ready is picked, whatever the numbers of classes that are not.
func TestAgingPicksWhoAloneIsReady(t *testing.T) {
	for c := range Priorities {
		h := new(heads)
		h.seq[c] = 5 // later than all others
		if got := (&aging{period: 1000}).pick(1<<c, h); got != c {
			t.Errorf("class %d alone: picked %d", c, got)
		}
	}
}
