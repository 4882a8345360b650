package rdmap

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

// unhex reads hex with blanks; "24*00" repeats an octet.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var out []byte
	for _, word := range strings.Fields(s) {
		count := 1
		if n, rest, ok := strings.Cut(word, "*"); ok {
			count = 0
			for _, c := range n {
				count = count*10 + int(c-'0')
			}
			word = rest
		}
		b, err := hex.DecodeString(word)
		if err != nil {
			t.Fatalf("bad hex %q: %v", word, err)
		}
		out = append(out, bytes.Repeat(b, count)...)
	}
	return out
}

// segment is a DDP segment in its parts: one of the two headers and a payload,
// which is one of ReadRequest, AtomicRequest, AtomicResponse, Terminate, an
// immediate value (uint64) or plain octets.
type segment struct {
	tagged   *ddp.Tagged
	untagged *ddp.Untagged
	payload  any
}

func (s segment) encode() []byte {
	var b []byte
	if s.tagged != nil {
		b = make([]byte, ddp.TaggedLen)
		ddp.PutTagged(b, s.tagged)
	} else {
		b = make([]byte, ddp.UntaggedLen)
		ddp.PutUntagged(b, s.untagged)
	}
	body := make([]byte, 64)
	switch p := s.payload.(type) {
	case nil:
	case []byte:
		b = append(b, p...)
	case ReadRequest:
		PutReadRequest(body, &p)
		b = append(b, body[:ReadRequestLen]...)
	case AtomicRequest:
		PutAtomicRequest(body, &p)
		b = append(b, body[:AtomicRequestLen]...)
	case AtomicResponse:
		PutAtomicResponse(body, &p)
		b = append(b, body[:AtomicResponseLen]...)
	case uint64:
		PutImmediate(body, p)
		b = append(b, body[:ImmediateLen]...)
	case Terminate:
		b = AppendTerminate(b, &p)
	}
	return b
}

// decode reads a ULPDU the way a receiver does, with every check there is.
func decode(t testing.TB, b []byte) segment {
	t.Helper()
	if len(b) == 0 || len(b) < ddp.HeaderLen(b[0]) || !ddp.VersionOK(b[0]) {
		t.Fatalf("ulpdu %x: no ddp header", b)
	}
	op, ok := ParseControl(b[1])
	if !ok {
		t.Fatalf("ulpdu %x: rdmap version", b)
	}
	var s segment
	var qn uint32
	payload := b[ddp.HeaderLen(b[0]):]
	if ddp.IsTagged(b[0]) {
		h := ddp.GetTagged(b)
		s.tagged = &h
	} else {
		h := ddp.GetUntagged(b)
		s.untagged = &h
		qn = h.QN
	}
	if code := CheckInbound(op, s.tagged != nil, qn, true); code != 0 {
		t.Fatalf("ulpdu %x: %v", b, code)
	}
	switch op {
	case OpReadReq:
		s.payload = GetReadRequest(payload)
	case OpAtomicReq:
		s.payload = GetAtomicRequest(payload)
	case OpAtomicResp:
		s.payload = GetAtomicResponse(payload)
	case OpImmediate, OpImmediateSE:
		s.payload = GetImmediate(payload)
	case OpTerminate:
		term, layout, err := ParseTerminate(payload)
		if err != nil || layout != LayoutRFC {
			t.Fatalf("terminate %x: %v, %v", payload, layout, err)
		}
		s.payload = term
	default:
		if len(payload) > 0 {
			s.payload = payload
		}
	}
	return s
}

// untagged is the header of a message of one segment.
func untagged(op Opcode, qn, msn uint32) *ddp.Untagged {
	return &ddp.Untagged{Last: true, ULP: Control(op), QN: qn, MSN: msn}
}

func tagged(op Opcode, stag uint32, to uint64) *ddp.Tagged {
	return &ddp.Tagged{Last: true, ULP: Control(op), STag: stag, TO: to}
}

// headerOf is the DDP header of a segment without its payload.
func headerOf(s segment) []byte {
	s.payload = nil
	return s.encode()
}

var (
	zeros24    = make([]byte, 24)
	writeHello = segment{tagged: tagged(OpWrite, 0x11223344, 0x1000), payload: []byte("hello")}
	read16     = segment{untagged: untagged(OpReadReq, ddp.QNReadReq, 1), payload: ReadRequest{
		SinkSTag: 0xaabbccdd, SinkTO: 0x2000, Size: 16, SrcSTag: 0x11223344, SrcTO: 0x1000}}
	allOnes = ^uint64(0)
)

// vectors are FPDUs with CRC. In a stream with markers the elements follow each
// other from the first octet on.
var vectors = []struct {
	name    string
	markers bool
	fpdus   []vectorFPDU
}{
	{"V1 first FPDU of a marked stream", true, []vectorFPDU{
		{"00000000 002a4143 00000000 00000000 00000001 00000000 24*00 52239983",
			segment{untagged: untagged(OpSend, 0, 1), payload: zeros24}}}},
	{"V6 RTR zero-length Write", false, []vectorFPDU{
		{"000ec140 00000001 00000000 00000000 ebd34c5f", segment{tagged: tagged(OpWrite, 1, 0)}}}},
	{"V4 RTR of the trace", false, []vectorFPDU{
		{"000ec140 00000000 00000000 00000000 a30572ab", segment{tagged: tagged(OpWrite, 0, 0)}}}},
	{"V4 Terminate of the trace", false, []vectorFPDU{
		{"00164147 00000000 00000002 00000001 00000000 00000000 f9a26f1d",
			segment{untagged: untagged(OpTerminate, 2, 1), payload: Terminate{Code: TermLocal}}}}},
	{"V7 RTR zero-length Read", false, []vectorFPDU{
		{"002e4141 00000000 00000001 00000001 00000000 00000000 00000000 00000000 00000000 00000001 00000000 " +
			"00000000 ba10e3c9",
			segment{untagged: untagged(OpReadReq, 1, 1), payload: ReadRequest{SrcSTag: 1}}}}},
	{"V8 Send hello", false, []vectorFPDU{
		{"00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c",
			segment{untagged: untagged(OpSend, 0, 1), payload: []byte("hello")}}}},
	{"V9 Send of nothing", false, []vectorFPDU{
		{"00124143 00000000 00000000 00000001 00000000 587be8c4", segment{untagged: untagged(OpSend, 0, 1)}}}},
	{"V10 Write hello", false, []vectorFPDU{
		{"0013c140 11223344 00000000 00001000 68656c6c 6f000000 cadc4b88", writeHello}}},
	{"V11 Read Request", false, []vectorFPDU{
		{"002e4141 00000000 00000001 00000001 00000000 aabbccdd 00000000 00002000 00000010 11223344 00000000 " +
			"00001000 8b3b4e93", read16}}},
	{"V12 its Read Response", false, []vectorFPDU{
		{"001ec142 aabbccdd 00000000 00002000 00010203 04050607 08090a0b 0c0d0e0f a44706e3",
			segment{tagged: tagged(OpReadResp, 0xaabbccdd, 0x2000), payload: []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
				11, 12, 13, 14, 15}}}}},
	{"V13 Send with SE and Invalidate", false, []vectorFPDU{
		{"00134146 11223300 00000000 00000002 00000000 78000000 5320a3f9",
			segment{untagged: &ddp.Untagged{Last: true, ULP: Control(OpSendSEInv), InvSTag: 0x11223300, MSN: 2},
				payload: []byte("x")}}}},
	{"V14 Terminate 2/0/02", false, []vectorFPDU{
		{"00164147 00000000 00000002 00000001 00000000 20020000 7fe42585",
			segment{untagged: untagged(OpTerminate, 2, 1), payload: Terminate{Code: TermMPACRC}}}}},
	{"V15 marker inside an FPDU", true, []vectorFPDU{
		{"", segment{untagged: untagged(OpSend, 0, 1), payload: make([]byte, 464)}},
		{"002a4143 00000000 00000000 00000002 00000000 00000014 24*00 84925898",
			segment{untagged: untagged(OpSend, 0, 2), payload: zeros24}}}},
	{"V16 Terminate 1/1/00 for V10", false, []vectorFPDU{
		{"00264147 00000000 00000002 00000001 00000000 1100c000 0013c140 11223344 00000000 00001000 b40ac866",
			segment{untagged: untagged(OpTerminate, 2, 1),
				payload: NewTerminate(TermTaggedSTag, len(writeHello.encode()), headerOf(writeHello), nil)}}}},
	{"V17 Terminate 0/1/02 for V11", false, []vectorFPDU{
		{"00464147 00000000 00000002 00000001 00000000 0102e000 002e4141 00000000 00000001 00000001 00000000 " +
			"aabbccdd 00000000 00002000 00000010 11223344 00000000 00001000 7e5f93f8",
			segment{untagged: untagged(OpTerminate, 2, 1),
				payload: NewTerminate(TermProtAccess, len(read16.encode()), headerOf(read16),
					read16.encode()[ddp.UntaggedLen:])}}}},
	{"V18 FetchAdd", false, []vectorFPDU{
		{"0046414a 00000000 00000001 00000001 00000000 00000000 00000001 11223344 00000000 00001000 00000000 " +
			"00000007 24*00 ba53451f",
			segment{untagged: untagged(OpAtomicReq, 1, 1),
				payload: AtomicRequest{Op: AtomicFetchAdd, ID: 1, STag: 0x11223344, TO: 0x1000, Data: 7}}}}},
	{"V19 CmpSwap", false, []vectorFPDU{
		{"0046414a 00000000 00000001 00000002 00000000 00000002 00000002 11223344 00000000 00001000 00000000 deadbeef " +
			"ffffffff ffffffff 00000000 00000007 ffffffff ffffffff 43f7f7f7",
			segment{untagged: untagged(OpAtomicReq, 1, 2), payload: AtomicRequest{Op: AtomicCmpSwap, ID: 2,
				STag: 0x11223344,
				TO:   0x1000, Data: 0xdeadbeef, Mask: allOnes, Compare: 7, CompareMask: allOnes}}}}},
	{"V20 Atomic Response", false, []vectorFPDU{
		{"001e414b 00000000 00000003 00000001 00000000 00000001 00000000 00000000 f9a6fe83",
			segment{untagged: untagged(OpAtomicResp, 3, 1), payload: AtomicResponse{ID: 1}}}}},
	{"V21 Immediate", false, []vectorFPDU{
		{"001a4148 00000000 00000000 00000001 00000000 01020304 05060708 06c22805",
			segment{untagged: untagged(OpImmediate, 0, 1), payload: uint64(0x0102030405060708)}}}},
	{"V22 marker at octet 4 of an FPDU", true, []vectorFPDU{
		{"00000000 01f24143 00000000 00000000 00000001 00000000 480*00 67126e0c",
			segment{untagged: untagged(OpSend, 0, 1), payload: make([]byte, 480)}},
		{"002a4143 00000004 00000000 00000000 00000002 00000000 24*00 0524497a",
			segment{untagged: untagged(OpSend, 0, 2), payload: zeros24}}}},
	{"V23 marker between FPDUs", true, []vectorFPDU{
		{"00000000 01f64143 00000000 00000000 00000001 00000000 484*00 a09bb55b",
			segment{untagged: untagged(OpSend, 0, 1), payload: make([]byte, 484)}},
		{"00000000 00164143 00000000 00000000 00000002 00000000 00000000 29027f22",
			segment{untagged: untagged(OpSend, 0, 2), payload: make([]byte, 4)}}}},
}

type vectorFPDU struct {
	wire string // "" when the list gives no octets
	seg  segment
}

// V2 to V5 are startup frames and V24 is a broken V8: package mpa tests them.
func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			var w mpa.MarkerWriter
			d := mpa.NewDeframer(v.markers, true)
			for i, f := range v.fpdus {
				ulpdu := f.seg.encode()
				got := mpa.AppendFPDU(nil, ulpdu, true)
				if v.markers {
					got = w.Append(nil, ulpdu, true)
				}
				wire := got
				if f.wire != "" {
					wire = unhex(t, f.wire)
				}
				if !bytes.Equal(got, wire) {
					t.Errorf("fpdu %d encoded:\n got %x\nwant %x", i, got, wire)
				}
				d.Feed(wire)
				back, ok, err := d.Next()
				if !ok || err != nil {
					t.Fatalf("fpdu %d: Next = %t, %v", i, ok, err)
				}
				if diff := cmp.Diff(f.seg, decode(t, back), cmp.AllowUnexported(segment{})); diff != "" {
					t.Errorf("fpdu %d decoded (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}
