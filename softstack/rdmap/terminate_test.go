package rdmap

import (
	"bytes"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

// termRows is the table of RFC 5040 §4.8, RFC 5041 §7.2, RFC 5044 §8 and RFC 6581 §8.
var termRows = []struct {
	code TermCode
	text string
	with headers
}{
	{TermLocal, "0/0/00 rdmap: local catastrophic error", headersNone},
	{TermProtSTag, "0/1/00 rdmap remote protection: invalid stag", headersRead},
	{TermProtBounds, "0/1/01 rdmap remote protection: base or bounds violation", headersRead},
	{TermProtAccess, "0/1/02 rdmap remote protection: access rights violation", headersRead},
	{TermProtNotAssociated, "0/1/03 rdmap remote protection: stag not associated with stream", headersRead},
	{TermProtWrap, "0/1/04 rdmap remote protection: tagged offset wraps", headersRead},
	{TermProtCannotInv, "0/1/09 rdmap remote protection: stag cannot be invalidated", headersRead},
	{TermProtUnspecified, "0/1/ff rdmap remote protection: unspecified", headersRead},
	{TermRDMAPVersion, "0/2/05 rdmap remote operation: invalid rdmap version", headersDDP},
	{TermOpcode, "0/2/06 rdmap remote operation: unexpected opcode", headersDDP},
	{TermStream, "0/2/07 rdmap remote operation: catastrophic, localized to stream", headersDDP},
	{TermGlobal, "0/2/08 rdmap remote operation: catastrophic, global", headersDDP},
	{TermCannotInv, "0/2/09 rdmap remote operation: stag cannot be invalidated", headersDDP},
	{TermUnspecified, "0/2/ff rdmap remote operation: unspecified", headersDDP},
	{TermDDPLocal, "1/0/00 ddp: local catastrophic error", headersNone},
	{TermTaggedSTag, "1/1/00 ddp tagged: invalid stag", headersDDP},
	{TermTaggedBounds, "1/1/01 ddp tagged: base or bounds violation", headersDDP},
	{TermTaggedNotAssoc, "1/1/02 ddp tagged: stag not associated with stream", headersDDP},
	{TermTaggedWrap, "1/1/03 ddp tagged: tagged offset wraps", headersDDP},
	{TermTaggedVersion, "1/1/04 ddp tagged: invalid ddp version", headersDDP},
	{TermUntaggedQN, "1/2/01 ddp untagged: invalid queue number", headersDDP},
	{TermUntaggedNoBuffer, "1/2/02 ddp untagged: no buffer for msn", headersDDP},
	{TermUntaggedMSN, "1/2/03 ddp untagged: msn out of range", headersDDP},
	{TermUntaggedMO, "1/2/04 ddp untagged: invalid message offset", headersDDP},
	{TermUntaggedTooLong, "1/2/05 ddp untagged: message too long for buffer", headersDDP},
	{TermUntaggedVersion, "1/2/06 ddp untagged: invalid ddp version", headersDDP},
	{TermMPATCPLost, "2/0/01 mpa: tcp connection lost", headersNone},
	{TermMPACRC, "2/0/02 mpa: crc mismatch", headersNone},
	{TermMPAMarker, "2/0/03 mpa: marker and length disagree", headersNone},
	{TermMPABadFrame, "2/0/04 mpa: invalid request or reply frame", headersNone},
	{TermMPALocal, "2/0/05 mpa: local catastrophic error", headersNone},
	{TermMPAInsufficientIRD, "2/0/06 mpa: insufficient ird resources", headersNone},
	{TermMPANoRTR, "2/0/07 mpa: no matching rtr option", headersNone},
}

func TestTermCodes(t *testing.T) {
	if len(termRows) != len(termTable) {
		t.Errorf("%d rows tested, %d in the table", len(termRows), len(termTable))
	}
	for _, row := range termRows {
		if got := row.code.String(); got != row.text {
			t.Errorf("String() = %q, want %q", got, row.text)
		}
		if row.code == 0 || !row.code.Known() {
			t.Errorf("%v: code %#x, known %t", row.code, uint32(row.code), row.code.Known())
		}
		if got := NewTermCode(row.code.Layer(), row.code.EType(), row.code.Code()); got != row.code {
			t.Errorf("%v is rebuilt as %v", row.code, got)
		}
	}
	if got := TermCode(0).String(); got != "ok" || TermCode(0).Known() {
		t.Errorf("no error is %q, known %t", got, TermCode(0).Known())
	}
	for _, c := range []TermCode{NewTermCode(0, 1, 5), NewTermCode(1, 3, 0), NewTermCode(2, 0, 0), NewTermCode(2, 1, 1),
		NewTermCode(15, 15, 255)} {
		if c.Known() || c.String()[len("0/0/00"):] != " unassigned" && c.String() != "15/15/ff unassigned" {
			t.Errorf("%v: known %t", c, c.Known())
		}
	}
	// Error type 0/0 has no code; any value there means the same.
	if c := NewTermCode(0, 0, 0x42); !c.Known() || c.String() != "0/0/42 rdmap: local catastrophic error" {
		t.Errorf("%v: known %t", c, c.Known())
	}
}

func TestTermCodesOfTheLayersBelow(t *testing.T) {
	if FromDDP(0) != 0 || FromMPA(0) != 0 {
		t.Error("no error below is an error here")
	}
	for _, row := range termRows {
		switch row.code.Layer() {
		case LayerDDP:
			c := ddp.ErrorCode(row.code &^ termSet)
			if FromDDP(c) != row.code || c.String() != row.text {
				t.Errorf("%v: FromDDP = %v, ddp says %v", row.code, FromDDP(c), c)
			}
		case LayerMPA:
			if c := mpa.Code(row.code.Code()); FromMPA(c) != row.code {
				t.Errorf("%v: FromMPA = %v", row.code, FromMPA(c))
			}
		}
	}
}

func TestNewTerminateFollowsTheColumns(t *testing.T) {
	taggedHdr := writeHello
	request := read16
	body := request[ddp.UntaggedLen:]
	for _, row := range termRows {
		full := NewTerminate(row.code, len(request), request, body)
		m, r := row.with != headersNone, row.with == headersRead
		if full.M != m || full.D != m || full.R != r {
			t.Errorf("%v: M %t D %t R %t", row.code, full.M, full.D, full.R)
		}
		if m && (full.SegLen != 46 || !bytes.Equal(full.DDP, request[:ddp.UntaggedLen])) {
			t.Errorf("%v: length %d, header %x", row.code, full.SegLen, full.DDP)
		}
		if r && !bytes.Equal(full.RDMAP, body) {
			t.Errorf("%v: rdmap header %x", row.code, full.RDMAP)
		}
		if short := NewTerminate(row.code, 19, taggedHdr, nil); short.R || short.M != m ||
			m && len(short.DDP) != ddp.TaggedLen {
			t.Errorf("%v of a write: %+v", row.code, short)
		}
		for name, bare := range map[string]Terminate{
			"no header":  NewTerminate(row.code, 0, nil, nil),
			"cut header": NewTerminate(row.code, 17, request[:ddp.UntaggedLen-1], body),
		} {
			if diff := cmp.Diff(Terminate{Code: row.code}, bare); diff != "" {
				t.Errorf("%v, %s (-want +got):\n%s", row.code, name, diff)
			}
		}
		if cut := NewTerminate(row.code, len(request), request, body[:ReadRequestLen-1]); cut.R {
			t.Errorf("%v: R with a cut read request", row.code)
		}
		if got := len(AppendTerminate(nil, &full)); got > MaxTerminateLen {
			t.Errorf("%v: payload of %d octets", row.code, got)
		}
	}
}

// siwPayload is what Linux siw on a little-endian host makes of t.
func siwPayload(t *Terminate) []byte {
	b := AppendTerminate(nil, t)
	b[0] = b[0]>>4 | b[0]<<4
	b[2] = b[2]>>7&1 | b[2]>>6&1<<1 | b[2]>>5&1<<2
	return b
}

func TestParseTerminateLayouts(t *testing.T) {
	ddpHdr, request := read16[:ddp.UntaggedLen], read16[ddp.UntaggedLen:]
	for _, c := range []struct {
		rfc, siw string // first four octets
		term     Terminate
	}{
		{"20020000", "02020000", NewTerminate(TermMPACRC, 0, nil, nil)}, // V14
		{"1100c000", "11000300", NewTerminate(TermTaggedSTag, 19, writeHello[:ddp.TaggedLen], nil)},
		{"1203c000", "21030300", NewTerminate(TermUntaggedMSN, 46, ddpHdr, nil)},
		{"0102e000", "10020700", NewTerminate(TermProtAccess, 46, ddpHdr, request)},
	} {
		rfc, siw := AppendTerminate(nil, &c.term), siwPayload(&c.term)
		if !bytes.Equal(rfc[:4], unhex(c.rfc)) || !bytes.Equal(siw[:4], unhex(c.siw)) {
			t.Errorf("%v: control words %x and %x, want %s and %s", c.term.Code, rfc[:4], siw[:4], c.rfc, c.siw)
		}
		for want, b := range map[Layout][]byte{LayoutRFC: rfc, LayoutSiw: siw} {
			got, layout, err := ParseTerminate(b)
			if err != nil || layout != want {
				t.Errorf("%v in %v layout: read as %v, %v", c.term.Code, want, layout, err)
			}
			if diff := cmp.Diff(c.term, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%v in %v layout (-want +got):\n%s", c.term.Code, want, diff)
			}
		}
	}
}

// W-64: reasons without headers in siw's layout; ParseTerminate's comment names those that are misread.
func TestParseTerminateWithoutHeaders(t *testing.T) {
	mistaken := map[TermCode]TermCode{
		TermRDMAPVersion: TermMPALocal,
		TermOpcode:       TermMPAInsufficientIRD,
		TermStream:       TermMPANoRTR,
		TermProtSTag:     TermDDPLocal,
	}
	for a, b := range maps.Clone(mistaken) {
		mistaken[b] = a
	}
	for _, row := range termRows {
		term := Terminate{Code: row.code}
		got, layout, err := ParseTerminate(AppendTerminate(nil, &term))
		if err != nil || layout != LayoutRFC || got.Code != row.code {
			t.Errorf("%v: read as %v in %v layout, %v", row.code, got.Code, layout, err)
		}
		got, layout, err = ParseTerminate(siwPayload(&term))
		want := row.code
		if m, ok := mistaken[row.code]; ok {
			want = m
		}
		symmetric := row.code.Layer() == row.code.EType()
		if err != nil || got.Code != want || (layout == LayoutSiw) != (want == row.code && !symmetric) {
			t.Errorf("siw's %v: read as %v in %v layout, %v", row.code, got.Code, layout, err)
		}
	}
	// What neither layout knows is reported as it stands.
	got, layout, err := ParseTerminate([]byte{0xf3, 0x77, 0, 0})
	if err != nil || layout != LayoutRFC || got.Code != NewTermCode(15, 3, 0x77) {
		t.Errorf("unknown reason: %v, %v, %v", got.Code, layout, err)
	}
}

// W-65: cut messages and flags without their headers.
func TestParseTerminateCutShort(t *testing.T) {
	full := NewTerminate(TermProtAccess, 46, read16[:ddp.UntaggedLen], read16[ddp.UntaggedLen:])
	for layout, b := range map[Layout][]byte{LayoutRFC: AppendTerminate(nil, &full), LayoutSiw: siwPayload(&full)} {
		for n := range len(b) {
			got, _, err := ParseTerminate(b[:n])
			if err == nil {
				t.Errorf("%v layout, %d of %d octets: no error", layout, n, len(b))
			}
			if n >= 4 && got.Code != full.Code {
				t.Errorf("%v layout, %d octets: code %v", layout, n, got.Code)
			}
			if n < 4 && got.Code != 0 {
				t.Errorf("%v layout, %d octets: code %v out of nothing", layout, n, got.Code)
			}
		}
		if got, _, err := ParseTerminate(append(bytes.Clone(b), 1, 2, 3)); err != nil || !got.R {
			t.Errorf("%v layout with octets behind: %+v, %v", layout, got, err)
		}
	}
}

// RFC 5040 §4.8: the segment length is present with D and valid with M.
func TestSegmentLengthIsPresentWithD(t *testing.T) {
	for _, term := range []Terminate{
		{Code: TermTaggedSTag, D: true, DDP: writeHello[:ddp.TaggedLen]},
		{Code: TermTaggedSTag, M: true, SegLen: 19},
	} {
		b := AppendTerminate(nil, &term)
		if want := 4 + 2 + len(term.DDP); len(b) != want {
			t.Errorf("M %t D %t: %d octets, want %d", term.M, term.D, len(b), want)
		}
		got, _, err := ParseTerminate(b)
		if diff := cmp.Diff(term, got); err != nil || diff != "" {
			t.Errorf("M %t D %t: %v, (-want +got):\n%s", term.M, term.D, err, diff)
		}
	}
}

func TestTerminateRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(termRows).Draw(t, "reason")
		hdr := rapid.SliceOfN(rapid.Byte(), ddp.UntaggedLen, ddp.UntaggedLen).Draw(t, "ddp header")
		req := rapid.SliceOfN(rapid.Byte(), 0, ReadRequestLen).Draw(t, "read request")
		term := NewTerminate(row.code, int(rapid.Uint16().Draw(t, "length")), hdr, req)
		got, layout, err := ParseTerminate(AppendTerminate(nil, &term))
		if err != nil || layout != LayoutRFC {
			t.Fatalf("%v, %v", layout, err)
		}
		if diff := cmp.Diff(term, got); diff != "" {
			t.Fatalf("parse of append (-want +got):\n%s", diff)
		}
		if !term.M {
			return // without headers see TestParseTerminateWithoutHeaders
		}
		got, layout, err = ParseTerminate(siwPayload(&term))
		if err != nil || layout != LayoutSiw || cmp.Diff(term, got) != "" {
			t.Fatalf("siw layout: %+v, %v, %v", got, layout, err)
		}
	})
}

func FuzzParseTerminate(f *testing.F) {
	full := NewTerminate(TermProtAccess, 46, read16[:ddp.UntaggedLen], read16[ddp.UntaggedLen:])
	write := NewTerminate(TermTaggedSTag, 19, writeHello[:ddp.TaggedLen], nil)
	for _, term := range []Terminate{full, write, {Code: TermMPACRC}, {Code: TermLocal}, {Code: TermOpcode}} {
		f.Add(AppendTerminate(nil, &term))
		f.Add(siwPayload(&term))
	}
	f.Add([]byte{0x11, 0, 0xc0})
	f.Add([]byte{0x01, 0x02, 0xe0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		term, layout, err := ParseTerminate(b)
		if err != nil {
			return
		}
		if (len(term.DDP) > 0) != term.D || (len(term.RDMAP) > 0) != term.R {
			t.Fatalf("flags and headers disagree: %+v", term)
		}
		back := AppendTerminate(nil, &term)
		if layout == LayoutSiw {
			back = siwPayload(&term)
		}
		want := bytes.Clone(b[:len(back)])
		// Reserved bits are not kept.
		if want[3] = 0; layout == LayoutSiw {
			want[2] &= 0x07
		} else {
			want[2] &= 0xe0
		}
		if !bytes.Equal(back, want) {
			t.Fatalf("append of parse in %v layout:\n got %x\nwant %x", layout, back, want)
		}
	})
}

// unhex reads hex with blanks.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// Segments of two FPDUs, V10 and V11 of package wiretest, which encodes and decodes all of that list.
var (
	writeHello = unhex("c140 11223344 00000000 00001000 68656c6c 6f")
	read16     = unhex("4141 00000000 00000001 00000001 00000000 aabbccdd 00000000 00002000 00000010 11223344 " +
		"00000000 00001000")
)
