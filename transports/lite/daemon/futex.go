package daemon

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2), between processes.
const (
	futexWait = 0
	futexWake = 1
)

// wakeWord wakes a thread that sleeps on a word of memory that processes share.
func wakeWord(w *atomic.Uint32) {
	// to wake none is no failure
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWake, 1, 0, 0, 0)
}

// sleepWord sleeps while a word holds was, for at most d.
func sleepWord(w *atomic.Uint32, was uint32, d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	// the caller polls after any result
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, uintptr(was),
		uintptr(unsafe.Pointer(&t)), 0, 0)
}
