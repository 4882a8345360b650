package ddp

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var taggedVectors = []struct {
	wire string
	h    Tagged
}{
	{"c140 00000001 00000000 00000000", Tagged{Last: true, ULP: 0x40, STag: 1}},                    // V6
	{"c140 11223344 00000000 00001000", Tagged{Last: true, ULP: 0x40, STag: 0x11223344, TO: 4096}}, // V10
	{"c142 aabbccdd 00000000 00002000", Tagged{Last: true, ULP: 0x42, STag: 0xaabbccdd, TO: 8192}}, // V12
	{"8140 ffffffff ffffffff fffffffe", Tagged{ULP: 0x40, STag: 0xffffffff, TO: 1<<64 - 2}},
}

var untaggedVectors = []struct {
	wire string
	h    Untagged
}{
	{"4143 00000000 00000000 00000001 00000000", Untagged{Last: true, ULP: 0x43, MSN: 1}},                      // V9
	{"4146 11223300 00000000 00000002 00000000", Untagged{Last: true, ULP: 0x46, InvSTag: 0x11223300, MSN: 2}}, // V13
	{"4141 00000000 00000001 00000001 00000000", Untagged{Last: true, ULP: 0x41, QN: QNReadReq, MSN: 1}},       // V11
	{"4147 00000000 00000002 00000001 00000000", Untagged{Last: true, ULP: 0x47, QN: QNTerminate, MSN: 1}},     // V14
	{"414b 00000000 00000003 00000001 00000000", Untagged{Last: true, ULP: 0x4b, QN: QNAtomicResp, MSN: 1}},    // V20
	{"0143 00000000 00000000 ffffffff 000005ca", Untagged{ULP: 0x43, QN: QNSend, MSN: 1<<32 - 1, MO: 1482}},
}

// vector writes and reads one header of n octets.
func vector[H comparable](t *testing.T, text string, h H, n int, last bool, put func([]byte, *H), get func([]byte) H) {
	wire, got := unhex(t, text), make([]byte, n)
	if put(got, &h); !bytes.Equal(got, wire) {
		t.Errorf("put of %+v = %x, want %x", h, got, wire)
	}
	if back := get(wire); back != h {
		t.Errorf("get of %x = %+v, want %+v", wire, back, h)
	}
	if b := wire[0]; IsTagged(b) != (n == TaggedLen) || IsLast(b) != last || !VersionOK(b) || HeaderLen(b) != n {
		t.Errorf("first octet %02x misread", b)
	}
}

func TestVectors(t *testing.T) {
	for _, v := range taggedVectors {
		vector(t, v.wire, v.h, TaggedLen, v.h.Last, PutTagged, GetTagged)
	}
	for _, v := range untaggedVectors {
		vector(t, v.wire, v.h, UntaggedLen, v.h.Last, PutUntagged, GetUntagged)
	}
}

// W-36, W-37: only DV decides about the version; the reserved bits do not count.
func TestFirstOctet(t *testing.T) {
	for b := range 256 {
		b0 := byte(b)
		if got, want := VersionOK(b0), b&3 == 1; got != want {
			t.Errorf("VersionOK(%02x) = %t, want %t", b, got, want)
		}
		if got, want := IsTagged(b0), b >= 0x80; got != want {
			t.Errorf("IsTagged(%02x) = %t, want %t", b, got, want)
		}
		if got, want := IsLast(b0), b>>6&1 == 1; got != want {
			t.Errorf("IsLast(%02x) = %t, want %t", b, got, want)
		}
	}
}

func TestPutWritesItsHeaderAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tagged := Tagged{rapid.Bool().Draw(t, "last"), rapid.Uint8().Draw(t, "ulp"), rapid.Uint32().Draw(t, "stag"),
			rapid.Uint64().Draw(t, "to")}
		untagged := Untagged{tagged.Last, tagged.ULP, rapid.Uint32().Draw(t, "inv"), rapid.Uint32().Draw(t, "qn"),
			rapid.Uint32().Draw(t, "msn"), rapid.Uint32().Draw(t, "mo")}
		b := bytes.Repeat([]byte{0xa5}, UntaggedLen+1)
		PutTagged(b, &tagged)
		if got := GetTagged(b); got != tagged {
			t.Fatalf("tagged: got %+v, want %+v", got, tagged)
		}
		if !bytes.Equal(b[TaggedLen:], bytes.Repeat([]byte{0xa5}, UntaggedLen+1-TaggedLen)) {
			t.Fatal("PutTagged wrote behind its header")
		}
		PutUntagged(b, &untagged)
		if got := GetUntagged(b); got != untagged {
			t.Fatalf("untagged: got %+v, want %+v", got, untagged)
		}
		if b[UntaggedLen] != 0xa5 {
			t.Fatal("PutUntagged wrote behind its header")
		}
	})
}

func TestHeadersDoNotAllocate(t *testing.T) {
	b := make([]byte, UntaggedLen)
	tagged := Tagged{Last: true, ULP: 0x40, STag: 1, TO: 2}
	untagged := Untagged{Last: true, ULP: 0x43, MSN: 1}
	q := NewRecvQueue(QNSend, 1)
	var sink uint64
	for name, f := range map[string]func(){
		"PutTagged":   func() { PutTagged(b, &tagged) },
		"GetTagged":   func() { h := GetTagged(b); sink += h.TO },
		"PutUntagged": func() { PutUntagged(b, &untagged) },
		"GetUntagged": func() { h := GetUntagged(b); sink += uint64(h.MO) },
		"Check": func() {
			h := Untagged{Last: true, MSN: q.MSN()}
			if _, code := q.Check(&h, 64, 64, true); code != 0 {
				t.Fatal(code)
			}
		},
		"CheckBounds": func() { sink += uint64(CheckBounds(10, 10, 0, 100)) },
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times a call", name, got)
		}
	}
	_ = sink
}

func FuzzHeader(f *testing.F) {
	for _, v := range taggedVectors {
		f.Add(unhex(f, v.wire))
	}
	for _, v := range untaggedVectors {
		f.Add(unhex(f, v.wire))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) < HeaderLen(b[0]) || !VersionOK(b[0]) {
			return // what the caller refuses before it reads a header
		}
		b = b[:HeaderLen(b[0])]
		got := make([]byte, len(b))
		if IsTagged(b[0]) {
			h := GetTagged(b)
			PutTagged(got, &h)
		} else {
			h := GetUntagged(b)
			PutUntagged(got, &h)
		}
		b[0] &^= 0x3c // reserved bits are not kept
		if !bytes.Equal(got, b) {
			t.Fatalf("put of get = %x, want %x", got, b)
		}
	})
}

func TestErrorCodes(t *testing.T) {
	for _, c := range []struct {
		code        ErrorCode
		etype, last uint8
		text        string
	}{
		{ErrLocal, 0, 0, "1/0/00 ddp: local catastrophic error"},
		{ErrTaggedSTag, 1, 0, "1/1/00 ddp tagged: invalid stag"},
		{ErrTaggedBounds, 1, 1, "1/1/01 ddp tagged: base or bounds violation"},
		{ErrTaggedNotAssociated, 1, 2, "1/1/02 ddp tagged: stag not associated with stream"},
		{ErrTaggedWrap, 1, 3, "1/1/03 ddp tagged: tagged offset wraps"},
		{ErrTaggedVersion, 1, 4, "1/1/04 ddp tagged: invalid ddp version"},
		{ErrUntaggedQN, 2, 1, "1/2/01 ddp untagged: invalid queue number"},
		{ErrUntaggedNoBuffer, 2, 2, "1/2/02 ddp untagged: no buffer for msn"},
		{ErrUntaggedMSN, 2, 3, "1/2/03 ddp untagged: msn out of range"},
		{ErrUntaggedMO, 2, 4, "1/2/04 ddp untagged: invalid message offset"},
		{ErrUntaggedTooLong, 2, 5, "1/2/05 ddp untagged: message too long for buffer"},
		{ErrUntaggedVersion, 2, 6, "1/2/06 ddp untagged: invalid ddp version"},
		{0x1342, 3, 0x42, "1/3/42 unassigned"},
	} {
		if c.code.Layer() != 1 || c.code.EType() != c.etype || c.code.Code() != c.last {
			t.Errorf("%#x splits into %d/%d/%02x", uint16(c.code), c.code.Layer(), c.code.EType(), c.code.Code())
		}
		if got := c.code.String(); got != c.text {
			t.Errorf("String() = %q, want %q", got, c.text)
		}
	}
	if got := ErrorCode(0).String(); got != "ok" {
		t.Errorf("code 0 is %q", got)
	}
}
