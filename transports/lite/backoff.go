package lite

import "time"

const (
	// maxIdle is how long callers may look at nothing and still attend to what arrives: who
	// streams long messages is away for a millisecond and more in each post and poll, as long
	// as the device takes octets. Arbitrary: three times that.
	maxIdle = 4 * pollPause
	// wakeEvery is after how many looks a polling goroutine that sleeps is told to leave that
	// to the callers. Arbitrary.
	wakeEvery = 16
	// pollPause is how long the polling goroutine leaves them alone at first, and mostPollPause while
	// they go on: what nobody waits for may be late by that much. Each end of a pause takes a
	// CPU from somebody who polls.
	pollPause    = time.Millisecond
	maxPollPause = 8 * pollPause
)

// pollBackoff is what the polling goroutine knows of callers that look at what arrives by
// themselves. It is the goroutine's own; looks and pauses come in as arguments.
type pollBackoff struct {
	seen  uint64        // looks by callers, as of the last pause
	slept time.Duration // the last pause
	rest  time.Duration // the next one
	idle  time.Duration // how long nobody looked, or too seldom
}

// next is for how long arrivals are left to callers; 0: nobody attends, and the goroutine may
// sleep in the device, where each of a busy caller's own packets would wake it. looks counts those
// of all callers. While something is held back for want of room, or where the device cannot wake
// who sleeps, it is never 0.
func (a *pollBackoff) next(looks uint64, held, events bool) time.Duration {
	attended := looks-a.seen >= minPolls(a.slept)
	if a.idle += a.slept; attended {
		a.idle = 0
	}
	if a.idle >= maxIdle && !held && events {
		a.slept, a.rest, a.idle = pollPause, pollPause, maxIdle
		return 0
	}
	if held {
		a.rest = pollPause // the goroutine is the one that hands it on
	}
	a.seen, a.slept = looks, a.rest
	if a.rest = min(2*a.rest, maxPollPause); !attended || held {
		a.rest = pollPause
	}
	return a.slept
}

// minPolls are the looks in d from which callers attend.
func minPolls(d time.Duration) uint64 { return uint64(max(d/maxIdle, 1)) }

// reset says that a caller goes to sleep: what it polled until then says nothing of who looks
// now. Counted, it made every answer half a pause late.
func (a *pollBackoff) reset(looks uint64) {
	a.seen, a.idle, a.rest = looks, maxIdle, pollPause
}
