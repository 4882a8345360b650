package procs

import (
	"runtime"
	"time"
)

// Yield lets other goroutines and other threads run, of whatever process: what a thread that polls waits for may need
// this CPU. CPUs learns how long the threads took.
func Yield() {
	runtime.Gosched()
	before := time.Now()
	YieldThread()
	now := time.Now()
	CPUs.Lost(now, now.Sub(before))
}
