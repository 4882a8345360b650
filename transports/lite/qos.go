package lite

import (
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"time"
)

// class is how an operation counts for SW-Pri.
type class uint8

const (
	classNone class = iota
	classLow
	classHigh
)

// load is what low priority is paced by: the number of operations that are on their
// way, and how slow the high ones were. The thresholds and pauses are those of LITE's
// code (lite_api.c); how the count of slow ones rises and falls is arbitrary.
type load struct {
	high, low atomic.Int32
	slow      atomic.Int32
	ended     atomic.Int64 // when the last high one was, by sinceStart
}

const (
	slowOp    = 32 * time.Microsecond
	slowMany  = 250
	slowMost  = 1000
	slowRaise = 10 // one slow operation outweighs as many fast ones
	// slowFor is how long the count says anything of now: it falls with high operations
	// alone, and would pace low for ever when those are over.
	slowFor = time.Millisecond
)

var start = time.Now()

func sinceStart() time.Duration { return time.Since(start) }

// pause is how long a low operation waits before it is posted now; 0 for not at all.
func (l *load) pause(now time.Duration) (from, to time.Duration) {
	high, low := l.high.Load(), l.low.Load()
	switch {
	case high >= 2:
		return 96 * time.Microsecond, 128 * time.Microsecond
	case l.slow.Load() > slowMany && now-time.Duration(l.ended.Load()) < slowFor:
		return 64 * time.Microsecond, 128 * time.Microsecond
	case high > 0 && low > high:
		return 32 * time.Microsecond, 64 * time.Microsecond
	}
	return 0, 0
}

// begin counts an operation in. A low one waits first.
func (l *load) begin(high bool) (time.Time, class) {
	if high {
		l.high.Add(1)
		return time.Now(), classHigh
	}
	if from, to := l.pause(sinceStart()); to > 0 {
		shortSleep(from + rand.N(to-from))
	}
	l.low.Add(1)
	return time.Time{}, classLow
}

// shortSleep sleeps for less than a millisecond. time.Sleep takes a whole one where nothing else
// runs, as the runtime waits in epoll_wait then, and low priority would get a tenth of what
// the pauses leave it.
func shortSleep(d time.Duration) {
	left := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&left, nil) // one that a signal ends is short
}

// end counts it out.
func (l *load) end(posted time.Time, c class) {
	switch c {
	case classLow:
		l.low.Add(-1)
	case classHigh:
		l.high.Add(-1)
		l.ended.Store(int64(sinceStart()))
		if time.Since(posted) >= slowOp {
			if l.slow.Load() < slowMost {
				l.slow.Add(slowRaise)
			}
		} else if l.slow.Load() > 0 {
			l.slow.Add(-1)
		}
	}
}
