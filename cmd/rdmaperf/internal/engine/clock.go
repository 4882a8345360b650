package engine

import "time"

// clockBase anchors the monotonic clock; its wall reading is never used.
var clockBase = time.Now()

// RestartClock makes Now begin at 0 again. It is for tests whose clock is that of a bubble
// of testing/synctest, while nothing else runs.
func RestartClock() { clockBase = time.Now() }

// Now is the monotonic time in nanoseconds since the process started. It is the
// only clock of the loops. time.Since takes the runtime's fast path for a
// monotonic base (about 25 ns where the vDSO reads a TSC, half of time.Now).
// Reading the TSC directly was rejected: it needs a calibration, and a wrong one
// bends every figure (perftest's 2 % rule).
func Now() int64 { return int64(time.Since(clockBase)) }
