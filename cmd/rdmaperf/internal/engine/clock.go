package engine

import "time"

// clockBase anchors the monotonic clock; its wall reading is never used.
var clockBase = time.Now()

// RestartClock makes Now begin at 0 again. It is for tests whose clock is that of a bubble
// of testing/synctest, while nothing else runs.
func RestartClock() { clockBase = time.Now() }

// Now is the monotonic time in nanoseconds since the process started, the only clock of the loops. time.Since of a
// monotonic base takes half of time.Now; reading the TSC directly would need a calibration.
func Now() int64 { return int64(time.Since(clockBase)) }
