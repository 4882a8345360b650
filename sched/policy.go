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

// classSet is a set of classes.
type classSet uint8

func (s classSet) has(c int) bool { return s&(1<<c) != 0 }

// most is the most urgent class of the set.
func (s classSet) most() int { return bits.Len8(uint8(s)) - 1 }

// discipline is an entry of the table of policies.
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
