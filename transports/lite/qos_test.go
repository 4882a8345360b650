package lite

import (
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The pauses of low priority are those of LITE's code (lite_api.c).
func TestLowPriorityIsPacedByTheLoadOfHigh(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		high, low, slow int32
		since           time.Duration // the last high one
		from, to        time.Duration
	}{
		{0, 0, 0, 0, 0, 0}, {0, 9, 0, 0, 0, 0}, {1, 1, 250, 0, 0, 0},
		{1, 2, 0, 0, 32 * us, 64 * us},
		{0, 0, 251, 0, 64 * us, 128 * us}, {1, 2, 251, 0, 64 * us, 128 * us},
		{2, 0, 0, 0, 96 * us, 128 * us}, {2, 0, 251, 0, 96 * us, 128 * us},
		{0, 0, 1000, 999 * us, 64 * us, 128 * us}, {0, 0, 1000, 1000 * us, 0, 0},
		{1, 2, 1000, 1000 * us, 32 * us, 64 * us},
	} {
		var l load
		l.high.Store(c.high)
		l.low.Store(c.low)
		l.slow.Store(c.slow)
		l.ended.Store(int64(time.Second))
		if from, to := l.pause(time.Second + c.since); from != c.from || to != c.to {
			t.Errorf("%d high, %d low, %d slow, %v ago: %v to %v, want %v to %v", c.high, c.low, c.slow, c.since, from,
				to, c.from, c.to)
		}
	}
}

// What slow operations of high say ends with them: it is told apart by its time, and high
// that is over paces nobody.
func TestHighThatIsOverPacesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l load
		for range slowMany/slowRaise + 1 {
			posted, c := sinceStart(), l.begin(true)
			time.Sleep(slowOp)
			l.end(sinceStart(), posted, c)
		}
		if _, to := l.pause(sinceStart()); to != 128*time.Microsecond {
			t.Errorf("paused for %v at most right behind slow operations", to)
		}
		time.Sleep(slowFor)
		if _, to := l.pause(sinceStart()); to != 0 {
			t.Errorf("paused for %v at most when high is over", to)
		}
	})
}

// Where the device has a clock of its own, low priority waits until that clock is there, and
// sleeps by no other; it waits for nothing when nothing is on its way, as the clock stands then.
func TestLowPriorityWaitsByTheDevicesClock(t *testing.T) {
	clock := new(rdma.Clock)
	n := &Node{caps: rdma.Caps{Clock: clock}}
	low := &Client{node: n}
	n.load.begin(true)
	n.load.begin(true)
	const due = 112 * time.Microsecond // the middle of the pause beside two
	for _, c := range []struct {
		at  time.Duration
		may bool
	}{{0, false}, {due - 1, false}, {due, true}, {due, false}, {2*due - 1, false}, {2 * due, true}} {
		clock.Set(int64(c.at))
		if low.mayPost() != c.may {
			t.Errorf("at %v it may post: %v", c.at, !c.may)
		}
	}
	if low.mayPost() {
		t.Error("may post right behind another")
	}
	for range 2 {
		n.load.end(0, 0, classHigh)
	}
	if !low.mayPost() {
		t.Error("waits while nothing is on its way")
	}
}

// The runtime's timers are good for milliseconds where nothing else runs, and so are no
// way to wait for microseconds. In the bubble its clock goes on by nothing but them.
func TestLowPriorityDoesNotWaitByTheRuntimesTimers(t *testing.T) {
	monotonic := func() time.Duration {
		var ts unix.Timespec
		expect.OK(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
		return time.Duration(ts.Nano())
	}
	synctest.Test(t, func(t *testing.T) {
		c := &Client{node: new(Node)}
		l := &c.node.load
		l.begin(true)
		l.begin(true)
		from, _ := l.pause(sinceStart())
		longest := time.Duration(0)
		for range 20 { // a signal may cut one of them short
			start, real := time.Now(), monotonic()
			if !c.mayPost() {
				t.Error("may not post after its pause")
			}
			longest = max(longest, monotonic()-real)
			if d := time.Since(start); d != 0 {
				t.Fatalf("waited %v by the runtime's timers", d)
			}
		}
		if longest < from {
			t.Errorf("the longest of 20 pauses took %v, want at least %v", longest, from)
		}
	})
}
