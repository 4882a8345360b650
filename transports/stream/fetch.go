package stream

import "unsafe"

// Fetch reads b into the caches, a word of each whole line of 64 bytes, and returns their
// sum, so that no compiler leaves it out. The kernel's copy of b into a socket then finds it
// there: that is a string instruction, which was measured (AMD EPYC, family 26) to wait for
// lines of the L3 cache, where loads that depend on nothing run ahead. 1 MiB written at depth
// 16 is 1.2 times as fast with it. A CRC does the same by the way. What a near cache has
// already costs 6 us for each MiB.
//
// b should fit the L2 cache, and be sent at once.
//
//go:noinline
func Fetch(b []byte) uint64 {
	const line = 64
	p := unsafe.Pointer(unsafe.SliceData(b))
	var x, y, z, w uint64
	i := 0
	for ; i+4*line <= len(b); i += 4 * line {
		x += *(*uint64)(unsafe.Add(p, i))
		y += *(*uint64)(unsafe.Add(p, i+line))
		z += *(*uint64)(unsafe.Add(p, i+2*line))
		w += *(*uint64)(unsafe.Add(p, i+3*line))
	}
	for ; i+line <= len(b); i += line {
		x += *(*uint64)(unsafe.Add(p, i))
	}
	return x + y + z + w
}
