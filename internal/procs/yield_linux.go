package procs

import "syscall"

// YieldThread lets another thread run on this processor (sched_yield(2)), by a raw call that keeps its place in the
// runtime.
func YieldThread() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
