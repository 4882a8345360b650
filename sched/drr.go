package sched

// drr is deficit round robin (Shreedhar and Varghese, SIGCOMM'95): each class in turn may send its weight in slices,
// and what it could not use because its next slice was too long is kept for its next turn. A class that runs empty
// loses the rest, so that it cannot save up. A turn goes to the most urgent class first.
type drr struct {
	weight  [Priorities]int
	deficit [Priorities]int
	turn    int // class whose turn it is
}

// The first round begins at the top, too: what comes before it is the least urgent class.
func newDRR(c *Config) policy { return &drr{weight: c.Weights} }

func (d *drr) pick(ready classSet, h *heads) int {
	if ready.has(d.turn) && d.deficit[d.turn] > 0 {
		return d.turn
	}
	for {
		for range Priorities {
			if d.turn--; d.turn < 0 {
				d.turn = Priorities - 1
			}
			if !ready.has(d.turn) {
				continue
			}
			if d.deficit[d.turn] += d.weight[d.turn] * h.unit; d.deficit[d.turn] > 0 {
				return d.turn
			}
		}
		d.skip(ready, h.unit)
	}
}

// skip passes the rounds in which every class would still be in debt, as after a long message that went whole.
func (d *drr) skip(ready classSet, unit int) {
	rounds := -1
	for c := range Priorities {
		if ready.has(c) {
			if n := -d.deficit[c] / (d.weight[c] * unit); rounds < 0 || n < rounds {
				rounds = n
			}
		}
	}
	for c := range Priorities {
		if ready.has(c) {
			d.deficit[c] += rounds * d.weight[c] * unit
		}
	}
}

func (d *drr) charge(class, bytes int, empty bool) {
	d.deficit[class] -= max(bytes, 1)
	if empty {
		d.deficit[class] = 0
	}
}
