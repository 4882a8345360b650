package bpev

import (
	"sync/atomic"
	"time"
)

// gain weighs the last waits of a caller: polling that served and a sleep shorter than Config.BusyTime count one,
// polling for nothing and a longer sleep take away longCosts. Below zero a caller does not poll where little arrives.
// Sleeps are counted then, too, so that it polls again a few short ones after its peer has become faster.
type gain int8

const (
	mostGain  = 8
	longCosts = 2
)

func (g *gain) note(short bool) {
	if short {
		*g = min(*g+1, mostGain)
	} else {
		*g = max(*g-longCosts, -mostGain)
	}
}

const (
	// seldom is the time between two ends of sleeps from which events cost less than a poller: several wake-ups of a
	// thread, many round trips. A poller goes on spinning so long after its last hit and the last Set.occupy.
	seldom = 250 * time.Microsecond
	// often is how many sleeps in a row must end within seldom before a poller pays again: more than the parts of one
	// call, which arrive close together also where calls are far apart.
	often = 8
)

// quiet says that a poller left its sleepers to their own events, because little arrives.
type quiet struct {
	on    atomic.Bool
	last  atomic.Int64 // nanoseconds since epoch of the last sleep that an event ended
	close atomic.Int32 // ends of sleeps within seldom, in a row
}

var epoch = time.Now()

// begin makes sleepers wait for events of their own.
func (q *quiet) begin() {
	q.close.Store(0)
	q.on.Store(true)
}

// note takes the end of a sleep by an event. It reports whether the poller pays again.
func (q *quiet) note(now time.Time) (over bool) {
	at := int64(now.Sub(epoch))
	if at-q.last.Swap(at) >= int64(seldom) {
		q.close.Store(0)
		return false
	}
	return q.close.Add(1) >= often && q.on.CompareAndSwap(true, false)
}

// countWaits is how many waits are one count of the connections that they are on.
const countWaits = 64

// crowd says that more connections are active than polling pays for. Those that idle do not count.
type crowd struct {
	most   int32 // connections
	on     atomic.Bool
	begun  atomic.Uint64 // waits
	active atomic.Int32  // connections of them, since the last count
}

// note takes the begin of a wait on h.
func (c *crowd) note(h *Handle) (on bool) {
	n := c.begun.Add(1)
	if count := n/countWaits + 1; h.counted.Load() != count {
		h.counted.Store(count)
		c.active.Add(1)
	}
	if n%countWaits == 0 {
		c.on.Store(c.active.Swap(0) > c.most)
	}
	return c.on.Load()
}
