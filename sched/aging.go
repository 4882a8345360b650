package sched

// aging is strict priority in which a waiting request rises one class for every period. Among equals the older goes
// first. A request of class 0 therefore waits at most seven periods longer than one of class 7 that comes with it.
type aging struct{ period int64 }

func newAging(c *Config) policy { return &aging{int64(c.AgeEvery)} }

func (a *aging) pick(ready classSet, h *heads) int {
	best, rank := -1, int64(0)
	for c := range Priorities {
		if !ready.has(c) {
			continue
		}
		r := int64(c) + (h.now-h.at[c])/a.period
		if best < 0 || r > rank || r == rank && h.seq[c] < h.seq[best] {
			best, rank = c, r
		}
	}
	return best
}

func (*aging) charge(int, int, bool) {}
