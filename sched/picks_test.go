package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// served lets classes that always have something to send, in slices of so many bytes, take n turns of a policy.
func served(p policy, n, unit int, bytes func(class int) int, classes ...int) (all []int) {
	var ready classSet
	for _, c := range classes {
		ready |= 1 << c
	}
	for range n {
		c := p.pick(ready, &heads{unit: unit})
		p.charge(c, bytes(c), false)
		all = append(all, c)
	}
	return all
}

// Each class has its weight in slices, the most urgent one first, also in the first round.
func TestDRRServesItsWeightsFromTheMostUrgentOn(t *testing.T) {
	cfg := Config{Weights: [Priorities]int{1, 2, 1, 1, 1, 1, 1, 3}}
	got := served(newDRR(&cfg), 12, 100, func(int) int { return 100 }, 0, 1, 7)
	if want := []int{7, 7, 7, 1, 1, 0, 7, 7, 7, 1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Bytes are shared, not slices: one that is twice as long costs the next turn.
func TestDRRSharesBytes(t *testing.T) {
	cfg := Config{Weights: [Priorities]int{1, 1, 1, 1, 1, 1, 1, 1}}
	got := served(newDRR(&cfg), 9, 100, func(c int) int { return 100 * (1 + c) }, 0, 1)
	if want := []int{1, 0, 0, 1, 0, 0, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What a class could not use it has no more when it ran empty, and so is its debt.
func TestDRRForgetsWhatAnEmptyClassHad(t *testing.T) {
	cfg := Config{Weights: [Priorities]int{1, 1, 1, 1, 1, 1, 1, 9}}
	d := newDRR(&cfg)
	if c := d.pick(1<<7|1, &heads{unit: 100}); c != 7 {
		t.Fatalf("class %d, want the most urgent", c)
	}
	d.charge(7, 100, true)
	if c := d.pick(1<<7|1, &heads{unit: 100}); c != 0 {
		t.Errorf("class %d goes on with what it had before it ran empty", c)
	}
}

// Rounds in which all are in debt are passed at once, with the same result as one by one.
func TestDRRSkipsRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cfg Config
		for c := range cfg.Weights {
			cfg.Weights[c] = rapid.IntRange(1, 5).Draw(t, "weight")
		}
		ready := classSet(rapid.IntRange(1, 255).Draw(t, "ready"))
		const unit = 16
		got, slow := newDRR(&cfg), [Priorities]int{}
		turn := 0
		for range 40 {
			c := got.pick(ready, &heads{unit: unit})
			// One round after the other, as the paper has it.
			for !ready.has(turn) || slow[turn] <= 0 {
				if turn = (turn + Priorities - 1) % Priorities; ready.has(turn) {
					slow[turn] += cfg.Weights[turn] * unit
				}
			}
			if c != turn {
				t.Fatalf("class %d, want %d", c, turn)
			}
			bytes := rapid.IntRange(0, 1000*unit).Draw(t, "bytes")
			got.charge(c, bytes, false)
			slow[c] -= max(bytes, 1)
		}
	})
}

// The earliest deadline goes first, and of equal ones the older request.
func TestEDFPicksTheEarliestDeadline(t *testing.T) {
	e := &edf{after: [Priorities]int64{7: 10, 3: 50, 0: 100}}
	for _, c := range []struct {
		name string
		all  []head
		want int
	}{
		{"alone, whatever its deadline", []head{{0, 1 << 40, 9}}, 0},
		{"posted together", []head{{0, 5, 1}, {3, 5, 2}, {7, 5, 3}}, 7},
		{"a class that allows more, earlier", []head{{0, 5, 1}, {7, 96, 2}}, 0},
		{"and as early, and older", []head{{0, 5, 1}, {7, 95, 2}}, 0},
		{"and as early, and younger", []head{{0, 5, 2}, {7, 95, 1}}, 7},
		{"of one age, the first that is looked at", []head{{0, 5, 2}, {7, 95, 2}}, 0},
		{"later by one", []head{{0, 5, 1}, {7, 94, 2}}, 7},
		{"in the middle", []head{{0, 0, 1}, {3, 49, 2}, {7, 95, 3}}, 3},
	} {
		if got := e.pick(waiting(0, c.all)); got != c.want {
			t.Errorf("%s: class %d, want %d", c.name, got, c.want)
		}
	}
}

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

// The highest rank goes first, a class for each whole period of waiting, and of equal ones the older.
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
