package sched

// fifo keeps the order of the posts.
type fifo struct{}

func (fifo) pick(ready classSet, h *heads) int {
	best := -1
	for c := range Priorities {
		if ready.has(c) && (best < 0 || h.seq[c] < h.seq[best]) {
			best = c
		}
	}
	return best
}

func (fifo) charge(int, int, bool) {}
