package mpa

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// The multipliers are those of Linux (arch/x86/crypto) and Chromium (crc32_simd.c).
func TestMultipliersAreThePublishedOnes(t *testing.T) {
	for n, want := range map[int]uint64{512 + 32: 0x740eef02, 512 - 32: 0x9e4addf8, 2048 + 32: 0xdcb17aa4,
		2048 - 32: 0xb9e02b86} {
		if got := multiplier(n); got != want {
			t.Errorf("x^%d is %#x, want %#x", n, got, want)
		}
	}
}

// Each way of this processor agrees with the library, also those that another is preferred to.
func TestEveryWayAgreesWithTheLibrary(t *testing.T) {
	was, was256, wasMixes := canFold, canFold256, mixes
	defer func() { canFold, canFold256, mixes = was, was256, wasMixes }()
	b := make([]byte, 3*mixBlock512)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for _, way := range []struct {
		name       string
		has        bool
		f512, f256 bool
		mixes      bool
	}{{"512 bits", was, true, false, false}, {"512 bits and the instruction", was, true, false, true},
		{"256 bits", was256, false, true, false}, {"library", true, false, false, false}} {
		t.Run(way.name, func(t *testing.T) {
			if !way.has {
				t.Skip("this processor does not multiply such vectors without carry")
			}
			canFold, canFold256, mixes = way.f512, way.f256, func() bool { return way.mixes }
			for _, around := range []int{128, foldMin, mixBlock, 2*mixBlock + 128, 4 * mixBlock, mixBlock512,
				mixBlock512 + 256, 2*mixBlock512 + 128} {
				for n := around - 70; n <= around+70; n++ {
					state, off := r.Uint32(), r.IntN(64)
					if got, want := CRC(state, b[off:off+n]),
						crc32.Update(state, castagnoli, b[off:off+n]); got != want {
						t.Fatalf("CRC(%08x, %d octets) = %08x, want %08x", state, n, got, want)
					}
				}
			}
		})
	}
}
