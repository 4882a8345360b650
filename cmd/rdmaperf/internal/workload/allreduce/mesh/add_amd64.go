package mesh

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// addVectors adds as many elements as fill vectors of 256 bits, and says how many. The compiler makes none of a loop.
func addVectors(dst, a, b []float32) int {
	n := len(dst) &^ 31
	if !cpu.X86.HasAVX || n == 0 {
		return 0
	}
	_, _ = a[n-1], b[n-1]
	addAVX(unsafe.SliceData(dst), unsafe.SliceData(a), unsafe.SliceData(b), n)
	return n
}

// addAVX takes n elements, a multiple of 32, at least 32.
//
//go:noescape
func addAVX(dst, a, b *float32, n int)
