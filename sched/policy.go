package sched

import "math/bits"

// policy chooses the class that goes next. One belongs to one QP and is called with its mutex held.
type policy interface {
	// pick returns a class out of ready, which is not empty.
	pick(ready classSet, heads *heads) int
	// charge tells that a slice of so many bytes of a class went. empty: the class has nothing left.
	charge(class, bytes int, empty bool)
}

// heads is what a policy may know of the oldest request of each class.
type heads struct {
	now  int64 // monotonic, ns; only for policies that are timed
	at   [Priorities]int64
	seq  [Priorities]uint64
	unit int // bytes of a slice
}

type classSet uint8

func (s classSet) has(c int) bool { return s&(1<<c) != 0 }

func (s classSet) most() int { return bits.Len8(uint8(s)) - 1 }

type discipline struct {
	make  func(c *Config) policy
	timed bool // needs the clock
}

var disciplines = map[Policy]discipline{
	Strict: {make: func(*Config) policy { return strict{} }},
	Aging:  {make: newAging, timed: true},
	DRR:    {make: newDRR},
	EDF:    {make: newEDF, timed: true},
	FIFO:   {}, // nothing to choose: fifoDevice
}

// aging is strict priority in which a waiting request rises one class every period; of equals the older goes first.
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

// edf takes the request whose deadline comes first: its post plus the time that its class allows.
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

// strict takes the most urgent class. What is less urgent starves while there is anything more urgent.
type strict struct{}

func (strict) pick(ready classSet, _ *heads) int { return ready.most() }
func (strict) charge(int, int, bool)             {}

// drr is deficit round robin (Shreedhar and Varghese, SIGCOMM'95): a class may send its weight in slices a turn, and
// keeps what was too little for its next slice, unless it runs empty.
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
