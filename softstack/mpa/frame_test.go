package mpa

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	hexReq = "4d504120494420526571204672616d65 "
	hexRep = "4d504120494420526570204672616d65 "
)

// sameFrame holds nil and empty private data for equal.
var sameFrame = cmpopts.EquateEmpty()

var frameVectors = []struct {
	name  string
	wire  string
	frame Frame
}{
	{"V2 request, ird 1 ord 1", hexReq + "50020004 00010001",
		Frame{CRC: true, Enhanced: true, Rev: 2, Enh: Enhanced{IRD: 1, ORD: 1}}},
	{"V2 as siw sends it", hexReq + "10020004 00010001", Frame{Enhanced: true, Rev: 2, Enh: Enhanced{IRD: 1, ORD: 1}}},
	{"V3 reply to V2", hexRep + "50020004 00010001",
		Frame{Reply: true, CRC: true, Enhanced: true, Rev: 2, Enh: Enhanced{IRD: 1, ORD: 1}}},
	{"V4 peer-to-peer request", hexReq + "50020004 8001c002",
		Frame{CRC: true, Enhanced: true, Rev: 2,
			Enh: Enhanced{PeerToPeer: true, RTRWrite: true, RTRRead: true, IRD: 1, ORD: 2}}},
	{"V4 peer-to-peer reply", hexRep + "50020004 80024001",
		Frame{Reply: true, CRC: true, Enhanced: true, Rev: 2,
			Enh: Enhanced{PeerToPeer: true, RTRRead: true, IRD: 2, ORD: 1}}},
	// V5 has no S, so its eight octets are all private data; with S the last four of them are.
	{"V5 reject busy", hexRep + "60020008 00010001 62757379",
		Frame{Reply: true, CRC: true, Reject: true, Rev: 2, Private: []byte("\x00\x01\x00\x01busy")}},
	{"V5 with S", hexRep + "70020008 00010001 62757379",
		Frame{Reply: true, CRC: true, Reject: true, Enhanced: true, Rev: 2,
			Enh: Enhanced{IRD: 1, ORD: 1}, Private: []byte("busy")}},
	{"revision 1 with markers", hexReq + "80010003 616263", Frame{Markers: true, Rev: 1, Private: []byte("abc")}},
	{"all flags and depths", hexReq + "f0020004 ffffffff",
		Frame{Markers: true, CRC: true, Reject: true, Enhanced: true, Rev: 2,
			Enh: Enhanced{PeerToPeer: true, RTRSend: true, RTRWrite: true, RTRRead: true, IRD: NoNegotiation,
				ORD: NoNegotiation}}},
	{"512 octets of private data", hexReq + "00010200 512*5a", Frame{Rev: 1, Private: bytes.Repeat([]byte{0x5a}, 512)}},
}

func TestFrameVectors(t *testing.T) {
	for _, v := range frameVectors {
		t.Run(v.name, func(t *testing.T) {
			wire := unhex(t, v.wire)
			if got := AppendFrame(nil, &v.frame); !bytes.Equal(got, wire) {
				t.Errorf("AppendFrame:\n got %x\nwant %x", got, wire)
			}
			got := need(ParseFrame(wire))(t)
			if diff := cmp.Diff(&v.frame, got, sameFrame); diff != "" {
				t.Errorf("ParseFrame (-want +got):\n%s", diff)
			}
			reply, pd, err := ParseFrameHeader(wire[:FrameHeaderLen])
			if err != nil || reply != v.frame.Reply || pd != len(wire)-FrameHeaderLen {
				t.Errorf("ParseFrameHeader = %t, %d, %v", reply, pd, err)
			}
		})
	}
}

// W-16: the four reserved bits are ignored.
func TestReservedFrameBitsAreIgnored(t *testing.T) {
	wire := unhex(t, hexReq+"50020004 00010001")
	want := need(ParseFrame(wire))(t)
	for bits := byte(1); bits < 0x10; bits++ {
		wire[16] = 0x50 | bits
		if diff := cmp.Diff(want, need(ParseFrame(wire))(t)); diff != "" {
			t.Errorf("reserved bits %x (-want +got):\n%s", bits, diff)
		}
	}
}

func TestBadFramesAreRefused(t *testing.T) {
	for _, c := range []struct{ name, wire string }{
		{"nothing", ""},
		{"header cut short", "4d504120494420526571204672616d65 500200"},
		{"W-03 revision 0", hexReq + "00000000"},
		{"W-03 revision 3", hexReq + "00030000"},
		{"W-03 revision 129", hexReq + "00810000"},
		{"W-03 revision 255", hexReq + "00ff0000"},
		{"W-04 private data of 513", hexReq + "00010201 513*00"},
		{"W-04 private data of 65535", hexReq + "0001ffff 65535*00"},
		{"W-05 less private data than announced", hexReq + "00010004 000000"},
		{"W-06 octets behind the frame", hexReq + "00010004 0000000000"},
		{"W-19 S with revision 1", hexReq + "10010004 00010001"},
		{"W-20 S with 0 octets", hexReq + "10020000"},
		{"W-20 S with 1 octet", hexReq + "10020001 00"},
		{"W-20 S with 2 octets", hexReq + "10020002 0000"},
		{"W-20 S with 3 octets", hexReq + "10020003 000000"},
		{"W-20 in a reply", hexRep + "10020000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseFrame(unhex(t, c.wire))
			wantCode(t, err, CodeBadFrame)
		})
	}
}

// The error says how many octets came, of how many.
func TestBadLengthsAreNamed(t *testing.T) {
	_, err := ParseFrame(unhex(t, hexReq+"00010004 000000"))
	if want := "private data of 3 octets, header says 4"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// W-01, W-02: every flipped bit of a key is found, but for the one that tells the two keys apart.
func TestEveryKeyBitCounts(t *testing.T) {
	for _, key := range []string{hexReq, hexRep} {
		for bit := range keyLen * 8 {
			wire := unhex(t, key+"00010000")
			wire[bit/8] ^= 1 << (bit % 8)
			if bit == 9*8 { // 'q' and 'p'
				if f, err := ParseFrame(wire); err != nil || f.Reply != (key == hexReq) {
					t.Errorf("bit %d of %q: %+v, %v", bit, key, f, err)
				}
				continue
			}
			var e *Error
			if _, err := ParseFrame(wire); !errors.As(err, &e) || e.Code != CodeBadFrame {
				t.Errorf("bit %d of %q: %v", bit, key, err)
			}
			if _, _, err := ParseFrameHeader(wire); !errors.As(err, &e) {
				t.Errorf("bit %d of %q: header: %v", bit, key, err)
			}
		}
	}
}

func TestCodeAndErrorText(t *testing.T) {
	seen := map[string]bool{}
	for c := range Code(9) {
		if text := c.String(); text == "" || seen[text] {
			t.Errorf("code %d: text %q", c, text)
		} else {
			seen[text] = true
		}
	}
	for want, err := range map[string]error{
		"mpa: crc mismatch": &Error{Code: CodeCRC},
		"mpa: invalid request or reply frame: revision 3, want 1 or 2": badFrame("revision %d, want 1 or 2", 3),
		"mpa: mpa error 200: x": &Error{Code: 200, Detail: "x"},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, v := range frameVectors {
		f.Add(unhex(f, v.wire))
	}
	f.Add(unhex(f, hexReq+"5f020004 00010001"))
	f.Add(unhex(f, hexReq+"10020003 000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, pd, herr := ParseFrameHeader(b)
		frame, err := ParseFrame(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeBadFrame || frame != nil {
				t.Fatalf("ParseFrame = %v, %v", frame, err)
			}
			return
		}
		if herr != nil || pd > MaxPrivate || len(b) != FrameHeaderLen+pd {
			t.Fatalf("frame parsed, header %d, %v", pd, herr)
		}
		back := AppendFrame(nil, frame)
		b[16] &^= 0x0f // reserved bits are not kept
		if !bytes.Equal(back, b) {
			t.Fatalf("append of parse:\n got %x\nwant %x", back, b)
		}
	})
}
