package bench

import "math/rand/v2"

// Arrival processes, as --arrivals spells them.
const (
	ArrivalsConstant = "constant"
	ArrivalsPoisson  = "poisson"
)

// Pacer says when operations are due: at a constant distance, or with the
// exponential gaps of a Poisson process, which has the same mean. It reads no
// clock and allocates nothing. Times are offsets from the start in floating
// point, which is exact to a nanosecond for 100 days, so that a rate that is no
// whole number of nanoseconds does not drift.
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

// NewPacer makes a pacer with a mean interval in nanoseconds, above 0. The same
// seed gives the same gaps.
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

// Missed is about how many operations from the next on are due before t: for a
// Poisson process, how many are expected.
func (p *Pacer) Missed(t int64) int64 {
	if p.due >= t {
		return 0
	}
	return 1 + int64(float64(t-1-p.due)/p.interval)
}

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
