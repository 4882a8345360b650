package peerrpc

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// yield lets goroutines and threads of other processes run: the peer may be waiting for this CPU.
func yield() {
	runtime.Gosched()
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it never fails (sched_yield(2))
}

// turnOf is the last byte of a cell, which the peer's write changes last. The word with it is
// loaded as one, and what follows is not read before it.
func turnOf(cell []byte) uint8 {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], atomic.LoadUint64((*uint64)(unsafe.Pointer(&cell[len(cell)-8]))))
	return b[7]
}
