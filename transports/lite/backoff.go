package lite

import "time"

const (
	// maxIdle is how long callers may poll nothing and still count as polling: a long message takes milliseconds.
	maxIdle = 4 * pollPause
	// wakeEvery polls by callers wake a polling goroutine that sleeps in the device.
	wakeEvery = 16
	// pollPause is the first pause of the polling goroutine while callers poll, and maxPollPause the longest. Arrivals
	// that no caller waits for may be late by that much.
	pollPause    = time.Millisecond
	maxPollPause = 8 * pollPause
)

// pollBackoff decides how long the polling goroutine leaves arrivals to callers that poll.
type pollBackoff struct {
	seen  uint64        // polls by callers, as of the last pause
	slept time.Duration // the last pause
	rest  time.Duration // the next one
	idle  time.Duration // how long callers polled too seldom
}

// next is how long to pause; 0 means that no caller polls, and the goroutine may sleep in the device. It is never 0
// while messages are deferred, nor where the device has no events.
func (a *pollBackoff) next(polls uint64, held, events bool) time.Duration {
	polling := polls-a.seen >= minPolls(a.slept)
	if a.idle += a.slept; polling {
		a.idle = 0
	}
	if a.idle >= maxIdle && !held && events {
		a.slept, a.rest, a.idle = pollPause, pollPause, maxIdle
		return 0
	}
	if held {
		a.rest = pollPause // the goroutine is the one that hands it on
	}
	a.seen, a.slept = polls, a.rest
	if a.rest = min(2*a.rest, maxPollPause); !polling || held {
		a.rest = pollPause
	}
	return a.slept
}

// minPolls is how many polls in d count as polling.
func minPolls(d time.Duration) uint64 { return uint64(max(d/maxIdle, 1)) }

// reset forgets the polls of a caller that goes to sleep: counted, they make answers half a pause late.
func (a *pollBackoff) reset(polls uint64) {
	a.seen, a.idle, a.rest = polls, maxIdle, pollPause
}
