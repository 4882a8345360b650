package mpa

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drain feeds stream in pieces, as long as cuts has them and what is left, and collects what comes out.
func drain(t tester, d *Deframer, stream []byte, cuts []int) (ulpdus [][]byte, err error) {
	t.Helper()
	feed := func(b []byte) {
		for {
			n := d.Feed(b)
			if n < 0 || n > len(b) {
				t.Fatalf("Feed took %d of %d octets", n, len(b))
			}
			b = b[n:]
			ulpdu, ok, nerr := d.Next()
			switch {
			case nerr != nil:
				if ok {
					t.Fatal("Next gave a ulpdu and an error")
				}
				err = nerr
				return
			case ok:
				ulpdus = append(ulpdus, bytes.Clone(ulpdu))
				if _, again, _ := d.Next(); again {
					t.Fatal("Next gave a ulpdu twice")
				}
			case len(b) == 0:
				return
			case n == 0:
				t.Fatal("Feed took nothing and Next had nothing")
			}
		}
	}
	for _, n := range cuts {
		n = min(n, len(stream))
		feed(stream[:n])
		stream = stream[n:]
	}
	feed(stream)
	return ulpdus, err
}

// frameAll frames ulpdus the way a sender with these settings does.
func frameAll(ulpdus [][]byte, markers, crc bool) (stream []byte) {
	var w MarkerWriter
	for _, u := range ulpdus {
		if markers {
			stream = w.Append(stream, u, crc)
		} else {
			stream = AppendFPDU(stream, u, crc)
		}
	}
	return stream
}

func equalAll(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

var settings = []struct {
	name         string
	markers, crc bool
}{{"plain", false, false}, {"crc", false, true}, {"markers", true, false}, {"markers and crc", true, true}}

// W-27, W-28: any piece size, an FPDU boundary at every offset of a piece.
func TestDeframerAtEverySplit(t *testing.T) {
	var ulpdus [][]byte
	for i, n := range []int{0, 1, 18, 2, 47, 23, 400, 14, 3, 600, 19} {
		ulpdus = append(ulpdus, bytes.Repeat([]byte{byte(i + 1)}, n))
	}
	for _, s := range settings {
		t.Run(s.name, func(t *testing.T) {
			stream := frameAll(ulpdus, s.markers, s.crc)
			for cut := 0; cut <= len(stream); cut++ {
				got, err := drain(t, NewDeframer(s.markers, s.crc), stream, []int{cut})
				if err != nil || !equalAll(got, ulpdus) {
					t.Fatalf("cut at %d: %d ulpdus, %v", cut, len(got), err)
				}
			}
			for _, size := range []int{1, 2, 3, 4, 5, 7, 511, 512, 513} {
				cuts := slices.Repeat([]int{size}, len(stream)/size)
				got, err := drain(t, NewDeframer(s.markers, s.crc), stream, cuts)
				if err != nil || !equalAll(got, ulpdus) {
					t.Fatalf("pieces of %d: %d ulpdus, %v", size, len(got), err)
				}
			}
		})
	}
}

func TestDeframerRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		markers := rapid.Bool().Draw(t, "markers")
		crc := rapid.Bool().Draw(t, "crc")
		ulpdus := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 1600), 0, 8).Draw(t, "ulpdus")
		cuts := rapid.SliceOf(rapid.IntRange(0, 700)).Draw(t, "cuts")
		stream := frameAll(ulpdus, markers, crc)
		d := NewDeframer(markers, crc)
		got, err := drain(t, d, stream, cuts)
		if err != nil || !equalAll(got, ulpdus) {
			t.Fatalf("%d of %d ulpdus, %v", len(got), len(ulpdus), err)
		}
		if d.Partial() {
			t.Fatal("partial at the end of the last fpdu")
		}
	})
}

func TestDeframerNeverTakesTheNextFPDU(t *testing.T) {
	for _, s := range settings {
		var w MarkerWriter
		d := NewDeframer(s.markers, s.crc)
		for _, n := range []int{18, 484, 30, 500} {
			ulpdu := bytes.Repeat([]byte{1}, n)
			fpdu := AppendFPDU(nil, ulpdu, s.crc)
			if s.markers {
				fpdu = w.Append(nil, ulpdu, s.crc)
			}
			if got := d.Feed(append(fpdu, 1, 2, 3, 4, 5, 6, 7, 8)); got != len(fpdu) {
				t.Fatalf("%s: Feed took %d, the fpdu has %d", s.name, got, len(fpdu))
			}
			if got := d.Feed([]byte{1}); got != 0 {
				t.Fatalf("%s: Feed took %d before Next", s.name, got)
			}
			if got, ok, err := d.Next(); !ok || err != nil || !bytes.Equal(got, ulpdu) {
				t.Fatalf("%s: Next = %d octets, %t, %v", s.name, len(got), ok, err)
			}
		}
	}
}

func TestPartialSeesACutStream(t *testing.T) {
	for _, s := range settings {
		stream := frameAll([][]byte{make([]byte, 20), make([]byte, 30)}, s.markers, s.crc)
		first := len(frameAll([][]byte{make([]byte, 20)}, s.markers, s.crc))
		for cut := 0; cut <= len(stream); cut++ {
			d := NewDeframer(s.markers, s.crc)
			if _, err := drain(t, d, stream[:cut], nil); err != nil {
				t.Fatal(err)
			}
			want := cut != 0 && cut != first && cut != len(stream)
			if got := d.Partial(); got != want {
				t.Errorf("%s: cut at %d: Partial = %t, want %t", s.name, cut, got, want)
			}
		}
	}
}

func wantCode(t *testing.T, err error, want Code) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("error %v, want code %d (%v)", err, want, want)
	}
}

// V24 and W-07, W-35: a bad CRC is found, nothing behind it comes out.
func TestBadCRC(t *testing.T) {
	good := unhex(t, "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c")
	bad := unhex(t, "00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 466f4ef3")
	for i := range CRCLen {
		if at := len(good) - CRCLen + i; good[at] != ^bad[at] {
			t.Fatalf("V24 is not V8 with the CRC inverted")
		}
	}
	d := NewDeframer(false, true)
	got, err := drain(t, d, bytes.Join([][]byte{good, bad, good}, nil), nil)
	if len(got) != 1 {
		t.Errorf("%d ulpdus, want the one before the error", len(got))
	}
	wantCode(t, err, CodeCRC)
	if n := d.Feed(good); n != len(good) {
		t.Errorf("Feed after the error took %d of %d", n, len(good))
	}
	_, ok, again := d.Next()
	if ok || again != err {
		t.Errorf("Next after the error = %t, %v", ok, again)
	}
	// W-14: without CRC the field is not looked at.
	if got, err := drain(t, NewDeframer(false, false), bad, nil); len(got) != 1 || err != nil {
		t.Errorf("without crc: %d ulpdus, %v", len(got), err)
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	for _, markers := range []bool{false, true} {
		stream := frameAll([][]byte{[]byte("hello")}, markers, true)
		for bit := range len(stream) * 8 {
			b := bytes.Clone(stream)
			b[bit/8] ^= 1 << (bit % 8)
			b = append(b, make([]byte, 1<<16+1024)...) // for a longer length
			if got, err := drain(t, NewDeframer(markers, true), b, nil); len(got) != 0 || err == nil {
				t.Errorf("markers %t, bit %d: %d ulpdus, %v", markers, bit, len(got), err)
			}
		}
	}
}

// W-29: pad octets may have any value, the CRC covers them.
func TestPadIsIgnored(t *testing.T) {
	b := AppendFPDU(nil, []byte("hello sailor!"), false)
	body := b[:len(b)-CRCLen]
	body[len(body)-1] = 0xaa
	PutCRC(b[len(body):], CRC(0, body))
	if got, err := drain(t, NewDeframer(false, true), b, nil); len(got) != 1 || err != nil {
		t.Errorf("%d ulpdus, %v", len(got), err)
	}
	// W-30: CRC without the pad, or big endian.
	PutCRC(b[len(body):], CRC(0, body[:len(body)-1]))
	_, err := drain(t, NewDeframer(false, true), b, nil)
	wantCode(t, err, CodeCRC)
	PutCRC(b[len(body):], CRC(0, body))
	c := b[len(body):]
	c[0], c[1], c[2], c[3] = c[3], c[2], c[1], c[0]
	_, err = drain(t, NewDeframer(false, true), b, nil)
	wantCode(t, err, CodeCRC)
}

func TestMarkerErrors(t *testing.T) {
	ulpdus := [][]byte{make([]byte, 18+480), make([]byte, 18+24)}
	second := MarkerLen + FPDULen(len(ulpdus[0])) // its marker is four octets on
	for _, c := range []struct {
		name string
		bend func(b []byte)
		code Code // 0: accepted
	}{
		{"W-31 first pointer not 0", func(b []byte) { b[3] = 4 }, CodeMarker},
		{"W-31 pointer wrong", func(b []byte) { b[second+7] = 8 }, CodeMarker},
		{"W-31 pointer 0 inside an fpdu", func(b []byte) { b[second+7] = 0 }, CodeMarker},
		{"W-33 reserved bits", func(b []byte) { b[second+4], b[second+5] = 0xff, 0xff }, 0},
		{"low pointer bits", func(b []byte) { b[second+7] |= 3 }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, crc := range []bool{false, true} {
				b := frameAll(ulpdus, true, crc)
				c.bend(b)
				if crc { // the sender computed its CRCs over the bent markers
					PutCRC(b[second-CRCLen:], CRC(0, b[:second-CRCLen]))
					PutCRC(b[len(b)-CRCLen:], CRC(0, b[second:len(b)-CRCLen]))
				}
				got, err := drain(t, NewDeframer(true, crc), b, nil)
				if c.code == 0 {
					if len(got) != 2 || err != nil {
						t.Errorf("crc %t: %d ulpdus, %v", crc, len(got), err)
					}
					continue
				}
				wantCode(t, err, c.code)
			}
		})
	}
}

// W-32: missing markers are found by the first FPDU across a marker position, and by the first octets.
func TestMissingMarkers(t *testing.T) {
	_, err := drain(t, NewDeframer(true, true), AppendFPDU(nil, bytes.Repeat([]byte{0x41}, 600), true), nil)
	wantCode(t, err, CodeMarker)

	b := frameAll([][]byte{bytes.Repeat([]byte{0x41}, 100)}, true, true)
	b = AppendFPDU(b, bytes.Repeat([]byte{0x41}, 600), true)
	got, err := drain(t, NewDeframer(true, true), b, nil)
	if len(got) != 1 {
		t.Errorf("%d ulpdus before the missing marker, want 1", len(got))
	}
	wantCode(t, err, CodeMarker)
}

// W-25: the largest ULPDU is accepted; the Deframer keeps one FPDU and no more.
func TestDeframerMemoryIsBounded(t *testing.T) {
	for _, s := range settings {
		big := bytes.Repeat([]byte{7}, MaxULPDU)
		d := NewDeframer(s.markers, s.crc)
		stream := frameAll([][]byte{big, big, big, []byte("x"), big}, s.markers, s.crc)
		got, err := drain(t, d, stream, []int{1, 1, 1, 1, 70000})
		if err != nil || len(got) != 5 || !bytes.Equal(got[4], big) {
			t.Errorf("%s: %d ulpdus, %v", s.name, len(got), err)
		}
		if limit := 80 << 10; cap(d.buf) > limit {
			t.Errorf("%s: buffer of %d octets, limit %d", s.name, cap(d.buf), limit)
		}
	}
}

func FuzzDeframer(f *testing.F) {
	for _, s := range settings {
		f.Add(s.markers, s.crc, frameAll([][]byte{[]byte("hello"), make([]byte, 498), {}, []byte("x")}, s.markers,
			s.crc), []byte{1, 0, 3, 200})
	}
	for _, v := range plainVectors {
		f.Add(false, true, unhex(f, v.wire), []byte{2})
	}
	f.Add(true, false, unhex(f, "00000000 ffff 0000"), []byte{5})
	f.Fuzz(func(t *testing.T, markers, crc bool, stream, cutBytes []byte) {
		cuts := make([]int, len(cutBytes))
		for i, c := range cutBytes {
			cuts[i] = int(c)
		}
		dw, ds := NewDeframer(markers, crc), NewDeframer(markers, crc)
		whole, werr := drain(t, dw, stream, nil)
		split, serr := drain(t, ds, stream, cuts)
		if !equalAll(whole, split) {
			t.Fatalf("%d ulpdus whole, %d split", len(whole), len(split))
		}
		if (werr == nil) != (serr == nil) || werr != nil && werr.Error() != serr.Error() {
			t.Fatalf("error whole %v, split %v", werr, serr)
		}
		if werr == nil && dw.Partial() != ds.Partial() {
			t.Fatalf("partial whole %t, split %t", dw.Partial(), ds.Partial())
		}
		// What came out can be framed again and comes out again.
		again, err := drain(t, NewDeframer(markers, crc), frameAll(whole, markers, crc), nil)
		if err != nil || !equalAll(again, whole) {
			t.Fatalf("framed again: %d ulpdus, %v", len(again), err)
		}
	})
}
