package mpa

import "testing"

// The multipliers are those that others publish for 64 octets at a time (Linux,
// arch/x86/crypto; Chromium's crc32_simd.c), on processors that cannot fold, too.
func TestMultipliersAreThePublishedOnes(t *testing.T) {
	for n, want := range map[int]uint64{512 + 32: 0x740eef02, 512 - 32: 0x9e4addf8, 2048 + 32: 0xdcb17aa4, 2048 - 32: 0xb9e02b86} {
		if got := multiplier(n); got != want {
			t.Errorf("x^%d is %#x, want %#x", n, got, want)
		}
	}
}
