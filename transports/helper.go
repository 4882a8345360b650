package transports

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// helpers are processes that work for this one: what they use up is part of what a stack costs.
var helpers struct {
	sync.Mutex
	pids map[int]struct{}
}

// AddHelper counts the processor time of a process as this one's, until remove.
func AddHelper(pid int) (remove func()) {
	helpers.Lock()
	defer helpers.Unlock()
	if helpers.pids == nil {
		helpers.pids = map[int]struct{}{}
	}
	helpers.pids[pid] = struct{}{}
	return func() {
		helpers.Lock()
		defer helpers.Unlock()
		delete(helpers.pids, pid)
	}
}

// HelperCPU is the processor time of all helpers since each began. One that has ended counts no more.
func HelperCPU() (sum time.Duration) {
	helpers.Lock()
	defer helpers.Unlock()
	for pid := range helpers.pids {
		// The number is ~pid above three bits, of which 2 asks for scheduled time (clock_getcpuclockid(3)).
		var t unix.Timespec
		if unix.ClockGettime(int32(^pid<<3|2), &t) == nil {
			sum += time.Duration(t.Nano())
		}
	}
	return sum
}
