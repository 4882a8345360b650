package rdmap

import (
	"math/rand/v2"
	"testing"
)

// addFields is the pseudocode of RFC 7306 §5.1.1, bit by bit.
func addFields(old, add, mask uint64) uint64 {
	var sum uint64
	carry := uint64(0)
	for bit := range 64 {
		s := carry + old>>bit&1 + add>>bit&1
		sum |= s & 1 << bit
		carry = s >> 1 &^ (mask >> bit & 1)
	}
	return sum
}

func TestFetchAddKeepsCarriesInTheirField(t *testing.T) {
	for _, c := range []struct{ old, add, mask, want uint64 }{
		{1, 2, 0, 3},
		{allBits, 1, 0, 0},
		{allBits, 1, 1 << 63, 0},
		{0xff, 1, 1 << 7, 0},                       // the carry out of the low octet is lost
		{0xff, 1, 1 << 8, 0x100},                   // a field of nine bits
		{0x00ff00ff, 0x00010001, 1<<7 | 1<<23, 0},  // two fields, both wrap
		{0xffffffff_ffffffff, allBits, allBits, 0}, // 64 fields of one bit: exclusive or
		{0x0102030405060708, 0x1010101010101010, 0x8080808080808080, 0x1112131415161718},
	} {
		r := FetchAdd(1, 2, 3, c.add)
		r.Mask = c.mask
		if got := r.Result(c.old); got != c.want || got != addFields(c.old, c.add, c.mask) {
			t.Errorf("%x + %x in fields %x = %x, want %x", c.old, c.add, c.mask, got, c.want)
		}
	}
	rnd := rand.New(rand.NewPCG(7306, 1))
	for range 100000 {
		old, add, mask := rnd.Uint64(), rnd.Uint64(), rnd.Uint64()&rnd.Uint64()
		r := AtomicRequest{Op: AtomicFetchAdd, Data: add, Mask: mask, Compare: rnd.Uint64(), CompareMask: rnd.Uint64()}
		if got, want := r.Result(old), addFields(old, add, mask); got != want {
			t.Fatalf("%x + %x in fields %x = %x, want %x", old, add, mask, got, want)
		}
	}
}

func TestCmpSwapLooksAtMaskedBitsOnly(t *testing.T) {
	for _, c := range []struct{ old, compare, compareMask, swap, mask, want uint64 }{
		{7, 7, allBits, 9, allBits, 9},
		{7, 8, allBits, 9, allBits, 7},
		{0xab07, 7, 0xff, 9, allBits, 9},         // bits outside the compare mask do not count
		{0xab07, 7, 0xff, 9, 0xff, 0xab09},       // bits outside the swap mask stay
		{0xab07, 7, 0xffff, 9, 0xff, 0xab07},     // and here the comparison fails
		{123, 456, 0, allBits, allBits, allBits}, // nothing compared: a swap
		{123, 123, allBits, 5, 0, 123},           // nothing swapped
	} {
		r := AtomicRequest{Op: AtomicCmpSwap, Data: c.swap, Mask: c.mask, Compare: c.compare,
			CompareMask: c.compareMask}
		if got := r.Result(c.old); got != c.want {
			t.Errorf("%+v: %x becomes %x, want %x", r, c.old, got, c.want)
		}
	}
}

// TestRequestsFillUnusedMasks: RFC 7306 §5.2.1 wants ones where a mask is not used and zeros for unused data; V18 of
// the catalogue, which has zeros in the compare mask, is read but not written.
func TestRequestsFillUnusedMasks(t *testing.T) {
	if r, want := FetchAdd(1, 2, 3, 4),
		(AtomicRequest{Op: AtomicFetchAdd, ID: 1, STag: 2, TO: 3, Data: 4, CompareMask: allBits}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	if r, want := CmpSwap(1, 2, 3, 4, 5),
		(AtomicRequest{Op: AtomicCmpSwap, ID: 1, STag: 2, TO: 3, Data: 5, Mask: allBits, Compare: 4,
			CompareMask: allBits}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
	for op := range AtomicOp(16) {
		if op.Assigned() != (op == 0 || op == 2) {
			t.Errorf("operation %d assigned: %t", op, op.Assigned())
		}
	}
}
