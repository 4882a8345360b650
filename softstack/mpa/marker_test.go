package mpa

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// markedStream is a list of ULPDUs and the stream they make with markers.
type markedStream struct {
	name   string
	ulpdus []string
	wire   []string // one element an FPDU, with the marker before it
}

var markedVectors = []markedStream{
	{
		name:   "V1 RFC 5044 Fig. 5, first FPDU of a stream",
		ulpdus: []string{"4143 00000000 00000000 00000001 00000000 24*00"},
		wire:   []string{"00000000 002a4143 00000000 00000000 00000001 00000000 24*00 52239983"},
	}, {
		// The RFC says the first FPDU had 492 octets, which is where the stream
		// stands behind it: marker included, the second begins at 0x1ec.
		name: "V15 RFC 5044 Fig. 6, marker inside an FPDU",
		ulpdus: []string{
			"4143 00000000 00000000 00000001 00000000 464*00",
			"4143 00000000 00000000 00000002 00000000 24*00",
		},
		wire: []string{
			"",
			"002a4143 00000000 00000000 00000002 00000000 00000014 24*00 84925898",
		},
	}, {
		name: "V22 marker four octets into the second FPDU",
		ulpdus: []string{
			"4143 00000000 00000000 00000001 00000000 480*00",
			"4143 00000000 00000000 00000002 00000000 24*00",
		},
		wire: []string{
			"00000000 01f24143 00000000 00000000 00000001 00000000 480*00 67126e0c",
			"002a4143 00000004 00000000 00000000 00000002 00000000 24*00 0524497a",
		},
	}, {
		name: "V23 marker between two FPDUs",
		ulpdus: []string{
			"4143 00000000 00000000 00000001 00000000 484*00",
			"4143 00000000 00000000 00000002 00000000 4*00",
		},
		wire: []string{
			"00000000 01f64143 00000000 00000000 00000001 00000000 484*00 a09bb55b",
			"00000000 00164143 00000000 00000000 00000002 00000000 00000000 29027f22",
		},
	},
}

func TestMarkerVectors(t *testing.T) {
	for _, v := range markedVectors {
		t.Run(v.name, func(t *testing.T) {
			var w MarkerWriter
			d := NewDeframer(true, true)
			var at int
			for i := range v.ulpdus {
				ulpdu := unhex(t, v.ulpdus[i])
				got := w.Append(nil, ulpdu, true)
				if want := unhex(t, v.wire[i]); len(want) > 0 && !bytes.Equal(got, want) {
					t.Errorf("fpdu %d at %#x:\n got %x\nwant %x", i, at, got, want)
				}
				at += len(got)
				if n := d.Feed(got); n != len(got) {
					t.Fatalf("fpdu %d: Feed took %d of %d", i, n, len(got))
				}
				back, ok, err := d.Next()
				if !ok || err != nil || !bytes.Equal(back, ulpdu) {
					t.Fatalf("fpdu %d: Next = %x, %t, %v", i, back, ok, err)
				}
			}
		})
	}
	for payload, want := range map[int]int{464: 0x1ec, 480: 508, 484: 512} { // of V15, V22, V23
		if got := MarkerLen + FPDULen(18+payload); got != want {
			t.Errorf("the first fpdu of %d octets ends at %d, want %d", payload, got, want)
		}
	}
}

// Figure 4 of RFC 5044: a marker twelve octets into an FPDU of 16 octets.
func TestMarkerFigure4(t *testing.T) {
	w := MarkerWriter{pos: MarkerInterval - 12}
	ulpdu := unhex(t, "000102030405060708090a0b0c0d0e0f")
	got := w.Append(nil, ulpdu, false)
	want := unhex(t, "0010 00010203040506070809 0000000c 0a0b0c0d0e0f 0000 00000000")
	if !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// A marker right between the pad and the CRC belongs to the FPDU and is covered by its CRC (RFC 5044 §4.4).
func TestMarkerBetweenPadAndCRC(t *testing.T) {
	ulpdu := unhex(t, "4143 00000000 00000000 00000001 00000000 68656c6c 6f")
	body := FPDULen(len(ulpdu)) - CRCLen
	w := MarkerWriter{pos: uint(MarkerInterval - body)}
	got := w.Append(nil, ulpdu, true)
	if len(got) != body+MarkerLen+CRCLen {
		t.Fatalf("fpdu of %d octets", len(got))
	}
	if marker := binary.BigEndian.Uint32(got[body:]); marker != uint32(body) {
		t.Errorf("marker %08x, want %08x", marker, body)
	}
	if want := CRC(0, got[:body+MarkerLen]); GetCRC(got[body+MarkerLen:]) != want {
		t.Errorf("crc %08x, want %08x", GetCRC(got[body+MarkerLen:]), want)
	}
	d := NewDeframer(true, true)
	d.pos = uint(MarkerInterval - body)
	d.Feed(got)
	if back, ok, err := d.Next(); !ok || err != nil || !bytes.Equal(back, ulpdu) {
		t.Errorf("Next = %x, %t, %v", back, ok, err)
	}
}

// scanMarkers is a slow reader of a marked stream, written from RFC 5044 §4.3 and independent of the Deframer.
func scanMarkers(t testing.TB, stream []byte) (ulpdus [][]byte) {
	t.Helper()
	at := 0
	for at < len(stream) {
		var covered, clean []byte
		start := at
		began := false
		octet := func(inCRC bool) byte {
			if at%MarkerInterval == 0 {
				want := 0
				if began {
					want = at - start
				}
				marker := stream[at : at+MarkerLen]
				if got := int(binary.BigEndian.Uint32(marker)); got != want&0xffff {
					t.Fatalf("marker at %d is %#x, want %#x", at, got, want)
				}
				covered = append(covered, marker...)
				at += MarkerLen
			}
			if !began {
				began, start = true, at
			}
			b := stream[at]
			at++
			if inCRC {
				covered = append(covered, b)
			}
			return b
		}
		n := int(octet(true))<<8 | int(octet(true))
		for range n {
			clean = append(clean, octet(true))
		}
		for range Pad(n) {
			if b := octet(true); b != 0 {
				t.Fatalf("pad octet %#x", b)
			}
		}
		var sum [CRCLen]byte
		for i := range sum {
			sum[i] = octet(false)
		}
		if want := CRC(0, covered); GetCRC(sum[:]) != want {
			t.Fatalf("crc %08x, want %08x", GetCRC(sum[:]), want)
		}
		ulpdus = append(ulpdus, clean)
	}
	return ulpdus
}

func TestMarkersStandEvery512Octets(t *testing.T) {
	var w MarkerWriter
	var stream []byte
	var want [][]byte
	for i, n := range []int{0, 1, 17, 2, 505, 506, 507, 508, 509, 510, 1500, 3, 65018, 65535, 18, 494} {
		ulpdu := bytes.Repeat([]byte{byte(i + 1)}, n)
		want = append(want, ulpdu)
		stream = w.Append(stream, ulpdu, true)
	}
	if got := scanMarkers(t, stream); !equalAll(got, want) {
		t.Errorf("%d ulpdus differ from the %d", len(got), len(want))
	}
}
