package procs

import "syscall"

// YieldThread lets another thread run that waits for this processor, of this process or another (sched_yield(2)): the
// answer that a spinning thread waits for may have to be computed right here. It costs a system call when nobody waits.
// The raw call keeps the thread its place in the runtime.
func YieldThread() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
