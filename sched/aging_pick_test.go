package sched

import "testing"

// A single waiting request is picked from whatever class it is, however far it is ahead.
func TestAgingPicksTheOnlyOne(t *testing.T) {
	for c := range Priorities {
		h := &heads{}
		h.at[c] = 1 << 40 // its rank is negative
		h.seq[c] = 5      // later than all others
		if got := (&aging{period: 1000}).pick(1<<c, h); got != c {
			t.Errorf("class %d alone: %d", c, got)
		}
	}
}

// head is the oldest request of a class.
type head struct {
	class int
	at    int64
	seq   uint64
}

// waiting are requests as policies see them.
func waiting(now int64, all []head) (ready classSet, h *heads) {
	h = &heads{now: now}
	for _, x := range all {
		h.at[x.class], h.seq[x.class] = x.at, x.seq
		ready |= 1 << x.class
	}
	return ready, h
}

// The highest rank goes first, a class for each whole period of waiting, and among equal ranks
// the older, whichever class it is of.
func TestAgingPicksTheHighestRankAndAmongEqualsTheOldest(t *testing.T) {
	for _, c := range []struct {
		name string
		now  int64
		all  []head
		want int
	}{
		{"no time has passed", 5000, []head{{1, 5000, 1}, {6, 5000, 2}, {3, 5000, 0}}, 6},
		{"the last that is looked at", 5000, []head{{0, 5000, 1}, {7, 5000, 2}}, 7},
		{"the first that is looked at", 9500, []head{{0, 1000, 1}, {7, 9500, 2}}, 0},
		{"less than a period", 5999, []head{{2, 5000, 1}, {3, 5999, 2}}, 3},
		{"a period, and older", 6000, []head{{2, 5000, 1}, {3, 6000, 2}}, 2},
		{"a period, and younger", 6000, []head{{2, 5000, 2}, {3, 6000, 1}}, 3},
		{"of one age", 6000, []head{{2, 5000, 7}, {3, 5001, 7}}, 2},
		{"two periods", 7000, []head{{2, 5000, 9}, {3, 7000, 1}}, 2},
	} {
		if got := (&aging{period: 1000}).pick(waiting(c.now, c.all)); got != c.want {
			t.Errorf("%s: class %d, want %d", c.name, got, c.want)
		}
	}
}
