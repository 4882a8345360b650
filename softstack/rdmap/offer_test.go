package rdmap

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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

// TestOtherPrivateDataIsNoOffer: each octet of an offer counts, and so does its
// place. A wrong one leaves the private data as it is.
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
