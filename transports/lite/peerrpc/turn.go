package peerrpc

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// turnOf is the last byte of a cell, which the peer's write changes last. The word with it is
// loaded as one, and what follows is not read before it.
func turnOf(cell []byte) uint8 {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], atomic.LoadUint64((*uint64)(unsafe.Pointer(&cell[len(cell)-8]))))
	return b[7]
}
