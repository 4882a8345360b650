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

// load is what low priority is paced by. The thresholds and pauses are those of LITE's code (lite_api.c).
type load struct {
	high, low atomic.Int32
	slow      atomic.Int32
	ended     atomic.Int64 // when the last high one was
}

const (
	slowOp    = 32 * time.Microsecond
	slowMany  = 250
	slowMost  = 1000
	slowRaise = 10 // one slow operation outweighs as many fast ones
	// slowFor is how long the count is valid: only high operations lower it.
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

func (l *load) begin(high bool) class {
	if high {
		l.high.Add(1)
		return classHigh
	}
	l.low.Add(1)
	return classLow
}

// now is the time that high is observed by: the device's, where it has a clock of its own.
func (n *Node) now() time.Duration {
	if c := n.caps.Clock; c != nil {
		return time.Duration(c.Now())
	}
	return sinceStart()
}

// mayPost paces a low operation: it sleeps, or over a device with a clock of its own is false until that time.
func (c *Client) mayPost() bool {
	l := &c.node.load
	if c.node.caps.Clock == nil {
		if from, to := l.pause(sinceStart()); to > 0 {
			// time.Sleep takes a whole millisecond where nothing else runs (epoll_wait(2)).
			left := syscall.NsecToTimespec(int64(from + rand.N(to-from)))
			_ = syscall.Nanosleep(&left, nil) // one that a signal ends is short
		}
		return true
	}
	now := c.node.now()
	if c.due == 0 {
		if from, to := l.pause(now); to > 0 {
			c.due = now + (from+to)/2 // drawn, two runs would differ
		}
	}
	if now < c.due && l.high.Load()+l.low.Load() > 0 { // else nothing advances the clock
		return false
	}
	c.due = 0
	return true
}

func (l *load) end(now, posted time.Duration, c class) {
	switch c {
	case classLow:
		l.low.Add(-1)
	case classHigh:
		l.high.Add(-1)
		l.ended.Store(int64(now))
		if now-posted >= slowOp {
			if l.slow.Load() < slowMost {
				l.slow.Add(slowRaise)
			}
		} else if l.slow.Load() > 0 {
			l.slow.Add(-1)
		}
	}
}
