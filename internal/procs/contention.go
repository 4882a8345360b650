package procs

import (
	"runtime"
	"sync/atomic"
	"time"
)

// LostAfter is how long a spinning thread must be off its CPU before others count as wanting it: less than a time
// slice.
const LostAfter = 500 * time.Microsecond

const (
	// saved is what a wait that spinning serves saves: a wake-up, 20 to 70 us in a virtual machine.
	saved = 30 * time.Microsecond
	// mostDebt is some time slices, credited in advance: threads of both peers and other processes take them.
	mostDebt   = 20 * time.Millisecond
	leastPause = 10 * time.Millisecond
	mostPause  = 1280 * time.Millisecond
)

var start = time.Now()

// Contention says whether spinning pays. Time lost to others is a debt that waits repay which spinning served; where it
// grows, spinning ends, and is tried again after pauses that double; a debt that is repaid halves the pause. The zero
// value is ready, nil never sees any; methods are safe for concurrent use.
type Contention struct {
	debt  atomic.Int64 // nanoseconds
	until atomic.Int64 // nanoseconds since start: no spinning before
	pause atomic.Int64 // the last pause; 0 without contention
	one   bool         // there is one CPU, which a peer on this machine needs, too
}

// CPUs is the contention for the CPUs of this process.
var CPUs = Contention{one: runtime.NumCPU() == 1}

// Spin reports whether to spin at the time now.
func (c *Contention) Spin(now time.Time) bool {
	return c == nil || !c.one && (c.pause.Load() == 0 || int64(now.Sub(start)) >= c.until.Load())
}

// Calm reports whether nobody else wanted the CPUs of late.
func (c *Contention) Calm() bool { return c == nil || !c.one && c.pause.Load() == 0 }

// Lost notes that a thread that spun was off its CPU for d until now. What is shorter than LostAfter does not count.
func (c *Contention) Lost(now time.Time, d time.Duration) {
	if c == nil || d < LostAfter {
		return
	}
	at := int64(now.Sub(start))
	pause := c.pause.Load()
	if pause != 0 && at < c.until.Load() || c.debt.Add(int64(d)) < int64(mostDebt) {
		return // in a pause another thread noted it
	}
	next := min(max(2*pause, int64(leastPause)), int64(mostPause))
	if c.pause.CompareAndSwap(pause, next) {
		c.until.Store(at + next)
		c.debt.Store(int64(mostDebt - LostAfter)) // the next loss is too much, unless waits repay first
	}
}

// Served notes a wait that spinning served.
func (c *Contention) Served() {
	if c == nil || c.debt.Load() < -int64(mostDebt) {
		return
	}
	if c.debt.Add(-int64(saved)) > 0 {
		return
	}
	// To begin anew after one lucky phase beside busy neighbours would cost all the tries again.
	if pause := c.pause.Load(); pause >= 2*int64(leastPause) {
		if c.pause.CompareAndSwap(pause, pause/2) {
			c.debt.Store(int64(mostDebt - LostAfter))
		}
	} else if pause != 0 {
		c.pause.Store(0)
	}
}
