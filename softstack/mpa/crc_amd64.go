package mpa

import (
	"bytes"
	"hash/crc32"
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// foldMin is the shortest run that is folded: below it hash/crc32 is as fast.
const foldMin = 512

// canFold reports whether the CPU multiplies 512-bit vectors without carry: a quarter of the time of hash/crc32.
var canFold = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// canFold256 is the same with 256 bits: bit 10 of ECX of CPUID leaf 7 (Intel SDM vol. 2), and AVX2.
var canFold256 = cpu.X86.HasAVX2 && cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ && features7()>>10&1 == 1

// foldBy are the multipliers of foldCRC for the low and high 64 bits of 128: past 2048 bits, and 512.
var (
	foldBy    = [4]uint64{multiplier(2048 + 32), multiplier(2048 - 32), multiplier(512 + 32), multiplier(512 - 32)}
	foldBy256 = [4]uint64{multiplier(1024 + 32), multiplier(1024 - 32), multiplier(256 + 32), multiplier(256 - 32)}

	// mixBy are those of foldCRC256, and what shifts a CRC past three, two and one runs of mixCRC.
	mixBy = [7]uint64{foldBy256[0], foldBy256[1], foldBy256[2], foldBy256[3], multiplier(3*mixRun*8 - 32),
		multiplier(2*mixRun*8 - 32), multiplier(mixRun*8 - 32)}

	mixBy512 = [7]uint64{foldBy[0], foldBy[1], foldBy[2], foldBy[3], multiplier(3*mixRun512*8 - 32),
		multiplier(2*mixRun512*8 - 32), multiplier(mixRun512*8 - 32)}
)

const (
	mixRun   = 1024
	mixBlock = 4096 + 3*mixRun

	mixRun512   = 1536
	mixBlock512 = 8192 + 3*mixRun512
)

// multiplier is x^n modulo the CRC32c polynomial in wire order, shifted by one place for reflected numbers (Gopal et
// al., Fast CRC Computation for Generic Polynomials Using PCLMULQDQ, 2009).
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

//go:noescape
func foldCRC256(p *byte, n int, state uint32, k *[4]uint64) uint32

// mixCRC takes blocks of mixBlock octets: a part folded, and three runs of mixRun by the CRC32 instruction.
//
//go:noescape
func mixCRC(p *byte, blocks int, state uint32, k *[7]uint64) uint32

// mixes reports whether mixCRC512 is faster here than foldCRC, measured once in less than 0.1 ms.
var mixes = sync.OnceValue(func() bool {
	b := bytes.Repeat([]byte{1}, 4*mixBlock512)
	p, n := unsafe.SliceData(b), len(b)
	least := func(f func()) uint64 {
		least := uint64(math.MaxUint64)
		for range 5 {
			t := cycles()
			f()
			least = min(least, cycles()-t)
		}
		return least
	}
	return least(func() { mixCRC512(p, n/mixBlock512, 0, &mixBy512) }) < least(func() { foldCRC(p, n, 0, &foldBy) })
})

// mixCRC512 is mixCRC with blocks of mixBlock512 octets, and with runs of mixRun512.
//
//go:noescape
func mixCRC512(p *byte, blocks int, state uint32, k *[7]uint64) uint32

func features7() (ecx uint32)

// cycles is the processor's time stamp (RDTSC, Intel SDM vol. 2), which no state here hangs on.
func cycles() uint64

func updateCRC(crc uint32, b []byte) uint32 {
	n := len(b)
	switch {
	case n < foldMin:
		return crc32.Update(crc, castagnoli, b)
	case canFold:
		if k := n / mixBlock512; k > 0 && mixes() {
			crc = ^mixCRC512(unsafe.SliceData(b), k, ^crc, &mixBy512)
			b = b[k*mixBlock512:]
			n = len(b)
		}
		if n &^= 63; n < 256 {
			n = 0
			break
		}
		crc = ^foldCRC(unsafe.SliceData(b), n, ^crc, &foldBy)
	case canFold256:
		if k := n / mixBlock; k > 0 {
			crc = ^mixCRC(unsafe.SliceData(b), k, ^crc, &mixBy)
			b = b[k*mixBlock:]
		}
		if n = len(b) &^ 31; n < 128 {
			n = 0
			break
		}
		crc = ^foldCRC256(unsafe.SliceData(b), n, ^crc, &foldBy256)
	default:
		n = 0
	}
	return crc32.Update(crc, castagnoli, b[n:])
}
