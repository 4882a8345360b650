package engine

import (
	"math/rand/v2"
	"time"
)

// Arrival processes, as --arrivals spells them.
const (
	ArrivalsConstant = "constant"
	ArrivalsPoisson  = "poisson"
)

// Pacer says when operations are due: at a constant distance, or with the exponential gaps of a Poisson process of the
// same mean. It allocates nothing. Offsets in floating point are exact to a ns for 100 days, and do not drift.
type Pacer struct {
	start    float64
	interval float64 // mean, ns
	seed     uint64
	source   rand.PCG
	gaps     *rand.Rand // nil: constant
	n        uint64     // operations begun
	offset   float64
	due      int64
}

// NewPacer makes a pacer with a mean interval in nanoseconds, above 0. The same seed gives the same gaps.
func NewPacer(interval float64, poisson bool, seed uint64) *Pacer {
	p := &Pacer{interval: interval, seed: seed}
	if poisson {
		p.gaps = rand.New(&p.source)
	}
	return p
}

// Start makes the first operation due at t and begins the sequence of gaps anew.
func (p *Pacer) Start(t int64) {
	p.start, p.n, p.offset, p.due = float64(t), 0, 0, t
	p.source.Seed(p.seed, 0)
}

// Due is the intended start of the next operation.
func (p *Pacer) Due() int64 { return p.due }

// Overdue gives what is due before the end, with how long it has waited, in groups of n, returns how many operations
// that are, and moves the pacer to the end. Of very many, later groups have waited at least that long.
func (p *Pacer) Overdue(end int64, give func(waited, n int64)) (total int64) {
	for p.due < end && total < overdueExact {
		give(end-p.due, 1)
		total++
		p.Next()
	}
	if p.due >= end {
		return total
	}
	left := 1 + int64(float64(end-1-p.due)/p.interval)
	group := 1 + (left-1)/overdueExact
	for i := int64(0); i < left; i += group {
		n := min(group, left-i)
		last := p.due + int64(float64(i+n-1)*p.interval)
		give(max(end-last, 0), n)
	}
	p.due = end
	return total + left
}

// overdueExact is how many are given one by one, and how many groups more at most.
const overdueExact = 1 << 17

// Next goes on to the operation after.
func (p *Pacer) Next() {
	p.n++
	if p.gaps != nil {
		p.offset += p.gaps.ExpFloat64() * p.interval
	} else {
		p.offset = float64(p.n) * p.interval
	}
	p.due = int64(p.start + p.offset)
}

var clockBase = time.Now()

// RestartClock makes Now begin at 0 again, for tests in a bubble of testing/synctest.
func RestartClock() { clockBase = time.Now() }

// Now is the monotonic time in ns since the process started. time.Since of a monotonic base takes half of time.Now.
func Now() int64 { return int64(time.Since(clockBase)) }
