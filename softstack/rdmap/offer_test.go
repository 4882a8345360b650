package rdmap

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

func TestImmediateStandsInTheFirstFourOctets(t *testing.T) {
	var b [ImmediateLen]byte
	for _, c := range []struct {
		v    Immediate
		want string
	}{
		{Immediate{Value: 0x01020304}, "01020304 00000000"},
		{Immediate{Value: 0xfffefdfc, Alone: true}, "fffefdfc 00000001"},
		{Immediate{}, "00000000 00000000"},
	} {
		PutImmediate(b[:], c.v.Octets())
		if want := unhex(c.want); !bytes.Equal(b[:], want) {
			t.Errorf("%+v: %x, want %x", c.v, b, want)
		}
		if got := ImmediateOf(GetImmediate(b[:])); got != c.v {
			t.Errorf("%+v came back as %+v", c.v, got)
		}
	}
	// A foreign peer's eight octets belong to the Write before them.
	if got := ImmediateOf(0x0102030405060708); got != (Immediate{Value: 0x01020304}) {
		t.Errorf("foreign octets: %+v", got)
	}
}

func TestOffersAreCutOff(t *testing.T) {
	for _, private := range [][]byte{nil, {0}, []byte("hello"), bytes.Repeat([]byte{0xee}, 500)} {
		for e := range ExtAll + 1 {
			b := AppendOffer(private, e)
			if len(b) != len(private)+OfferLen {
				t.Fatalf("%d octets behind %d", len(b), len(private))
			}
			got, ext, ok := CutOffer(b)
			if !ok || ext != e || !bytes.Equal(got, private) {
				t.Errorf("%d octets with %b: %x, %b, %t", len(private), e, got, ext, ok)
			}
		}
	}
	if b := AppendOffer([]byte("hi"), ExtAll); !bytes.Equal(b, unhex("6869 0002 01 03 30c9427f")) {
		t.Errorf("%x", b)
	}
}

// TestOtherPrivateDataIsNoOffer: each octet of an offer counts, and so does its place.
func TestOtherPrivateDataIsNoOffer(t *testing.T) {
	whole := AppendOffer([]byte("hello"), ExtAll)
	for i := len(whole) - OfferLen; i < len(whole); i++ {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			if got, e, ok := CutOffer(b); ok || e != 0 || !bytes.Equal(got, b) {
				t.Errorf("octet %d, bit %d: %x, %b, %t", i, bit, got, e, ok)
			}
		}
	}
	for _, b := range [][]byte{nil, whole[:OfferLen-1], whole[1:], append([]byte{0}, whole...),
		append(bytes.Clone(whole), 0)} {
		if got, e, ok := CutOffer(b); ok || e != 0 || !bytes.Equal(got, b) {
			t.Errorf("%x: %x, %b, %t", b, got, e, ok)
		}
	}
}

// TestUnknownOffersHoldNothing: of a version or with bits that are not known.
func TestUnknownOffersHoldNothing(t *testing.T) {
	b := AppendOffer([]byte("x"), 0xff)
	if _, e, ok := CutOffer(b); !ok || e != ExtAll {
		t.Errorf("all bits: %b, %t", e, ok)
	}
	later := AppendOffer([]byte("x"), ExtAll)
	later[3] = offerVersion + 1
	reseal(later)
	if got, e, ok := CutOffer(later); !ok || e != 0 || string(got) != "x" {
		t.Errorf("later version: %q, %b, %t", got, e, ok)
	}
}

// reseal gives the offer at the end of b its checksum again.
func reseal(b []byte) {
	o := b[len(b)-OfferLen:]
	binary.BigEndian.PutUint32(o[4:], crc32.Checksum(o[:4], crc32.MakeTable(crc32.Castagnoli))^0x37333036)
}

// FuzzCutOffer: what is cut is what AppendOffer wrote, nothing is lost, and only known bits come out.
func FuzzCutOffer(f *testing.F) {
	f.Add([]byte{})
	f.Add(AppendOffer(nil, ExtAll))
	f.Add(AppendOffer([]byte("hello"), ExtImmediate))
	f.Add(append(AppendOffer([]byte("hello"), ExtAtomic), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		private, e, ok := CutOffer(b)
		switch {
		case !ok && (e != 0 || !bytes.Equal(private, b)):
			t.Fatalf("%x: %x, %b without an offer", b, private, e)
		case ok && (e&^ExtAll != 0 || !bytes.Equal(private, b[:len(b)-OfferLen])):
			t.Fatalf("%x: %x, %b", b, private, e)
		}
		again, e2, ok := CutOffer(AppendOffer(private, e))
		if !ok || e2 != e || !bytes.Equal(again, private) {
			t.Fatalf("%x, %b came back as %x, %b, %t", private, e, again, e2, ok)
		}
	})
}

// FuzzAtomic: every request survives its codec but for reserved bits, and Result is the pseudocode of the RFC.
func FuzzAtomic(f *testing.F) {
	f.Add(make([]byte, AtomicRequestLen), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, old uint64) {
		if len(b) < AtomicRequestLen {
			return
		}
		r := GetAtomicRequest(b)
		var c [AtomicRequestLen]byte
		PutAtomicRequest(c[:], &r)
		if again := GetAtomicRequest(c[:]); again != r || !bytes.Equal(c[4:], b[4:AtomicRequestLen]) {
			t.Fatalf("%x became %x", b, c)
		}
		want := addFields(old, r.Data, r.Mask)
		if r.Op == AtomicCmpSwap {
			if want = old; (r.Compare^old)&r.CompareMask == 0 {
				want = old&^r.Mask | r.Data&r.Mask
			}
		}
		if got := r.Result(old); r.Op.Assigned() && got != want {
			t.Fatalf("%+v: %x becomes %x, want %x", r, old, got, want)
		}
	})
}

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

// TestRequestsFillUnusedMasks: RFC 7306 §5.2.1 wants ones where a mask is not used; V18 has zeros.
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
