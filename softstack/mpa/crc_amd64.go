package mpa

import (
	"hash/crc32"
	"math/bits"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// foldMin is the shortest run that is folded. Below it hash/crc32 is as fast;
// arbitrary, above the 256 that foldCRC needs.
const foldMin = 512

// canFold tells whether the CPU multiplies 512-bit vectors without carry. Where
// it does, long runs take about a quarter of the time of hash/crc32, which is
// bound by the latency of the CRC32 instruction. On a bulk stream that is the
// difference between a CRC that costs a fifth of the bandwidth and one that
// hides behind the copy.
var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// foldBy are the multipliers of foldCRC, for the low and high 64 bits of each
// 128: past 2048 bits, and past 512.
var foldBy = [4]uint64{multiplier(2048 + 32), multiplier(2048 - 32), multiplier(512 + 32), multiplier(512 - 32)}

// multiplier is x^n modulo the CRC32c polynomial in the bit order of the wire,
// shifted by the one place that a carry-less product of reflected numbers lacks
// (Gopal et al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, 2009).
func multiplier(n int) uint64 {
	const poly = 0x1edc6f41
	v := uint32(1)
	for range n {
		top := v >> 31
		v <<= 1
		if top != 0 {
			v ^= poly
		}
	}
	return uint64(bits.Reverse32(v)) << 1
}

//go:noescape
func foldCRC(p *byte, n int, state uint32, k *[4]uint64) uint32

func updateCRC(crc uint32, b []byte) uint32 {
	if !canFold || len(b) < foldMin {
		return crc32.Update(crc, castagnoli, b)
	}
	n := len(b) &^ 63
	crc = ^foldCRC(unsafe.SliceData(b), n, ^crc, &foldBy)
	return crc32.Update(crc, castagnoli, b[n:])
}
