package sched

// edf takes the request whose deadline comes first: its post plus the time that
// its class allows. A deadline that has passed is only an early one.
type edf struct{ after [Priorities]int64 }

func newEDF(c *Config) policy {
	e := new(edf)
	for i, d := range c.Deadlines {
		e.after[i] = int64(d)
	}
	return e
}

func (e *edf) pick(ready classSet, h *heads) int {
	best, due := -1, int64(0)
	for c := range Priorities {
		if !ready.has(c) {
			continue
		}
		d := h.at[c] + e.after[c]
		if best < 0 || d < due || d == due && h.seq[c] < h.seq[best] {
			best, due = c, d
		}
	}
	return best
}

func (*edf) charge(int, int, bool) {}
