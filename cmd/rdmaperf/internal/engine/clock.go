package engine

import "time"

var clockBase = time.Now()

// RestartClock makes Now begin at 0 again, for tests in a bubble of testing/synctest.
func RestartClock() { clockBase = time.Now() }

// Now is the monotonic time in ns since the process started. time.Since of a monotonic base takes half of time.Now.
func Now() int64 { return int64(time.Since(clockBase)) }
