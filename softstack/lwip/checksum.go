//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import "unsafe"

// checksum is the sum that the library takes of b, before it is complemented.
func checksum(b []byte) uint16 {
	return uint16(C.lw_checksum(unsafe.Pointer(unsafe.SliceData(b)), C.int(len(b))))
}

// checksumReplaced tells that the library calls the sum of this package.
func checksumReplaced() bool { return C.lw_checksum_ours() != 0 }
