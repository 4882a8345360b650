package procs

import (
	"runtime"
	"time"
)

// Yield lets other goroutines and other threads run, of whatever process: what a thread that polls waits for may need
// this CPU.
func Yield() {
	runtime.Gosched()
	YieldThread()
}

// Yield is the function Yield for a thread whose waits are noted by Served: it notes how long the other threads took.
func (c *Contention) Yield() {
	runtime.Gosched()
	before := time.Now()
	YieldThread()
	now := time.Now()
	c.Lost(now, now.Sub(before))
}
