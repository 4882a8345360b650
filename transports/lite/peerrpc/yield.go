package peerrpc

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yield lets others run, goroutines and other processes' threads: who is waited for may
// be waiting for this CPU.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it never fails (sched_yield(2))
}

// turnOf is the last byte of a cell, which the peer's write changes last. The word that it
// stands in is loaded as one, and what follows is not read before it.
func turnOf(cell []byte) uint8 {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], atomic.LoadUint64((*uint64)(unsafe.Pointer(&cell[len(cell)-8]))))
	return b[7]
}
