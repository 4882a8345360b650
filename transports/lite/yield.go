package lite

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// yield lets others run, goroutines and other processes' threads: who is waited for may
// be waiting for this CPU, and would get it only at the end of a time slice.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it never fails (sched_yield(2))
}
