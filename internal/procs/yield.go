package procs

import (
	"runtime"
	"time"
)

// Yield lets other goroutines and threads run: what a thread that polls waits for may need this CPU.
func Yield() {
	runtime.Gosched()
	YieldThread()
}

// Yield is the function Yield for a thread whose waits Served notes: it notes how long the others took.
func (c *Contention) Yield() {
	runtime.Gosched()
	before := time.Now()
	YieldThread()
	now := time.Now()
	c.Lost(now, now.Sub(before))
}
