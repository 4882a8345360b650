package mpa

import (
	"bytes"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
)

// tester is a test, or a check of package rapid.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// need is the value of a call that must not fail.
func need[T any](v T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

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

func TestCRCMatchesTheCheckValueAndComposes(t *testing.T) {
	const want = 0xe3069283 // the check value of CRC32c
	text := []byte("123456789")
	if got := CRC(0, text); got != want {
		t.Errorf("CRC(0, %q) = %08x, want %08x", text, got, want)
	}
	for i := range text {
		if got := CRC(CRC(0, text[:i]), text[i:]); got != want {
			t.Errorf("CRC cut at %d = %08x, want %08x", i, got, want)
		}
	}
	var b [CRCLen]byte
	PutCRC(b[:], want)
	if b != [4]byte{0x83, 0x92, 0x06, 0xe3} {
		t.Errorf("PutCRC wrote %x, want little endian", b)
	}
	if got := GetCRC(b[:]); got != want {
		t.Errorf("GetCRC = %08x, want %08x", got, want)
	}
}

func TestPadMakesTheFPDUAMultipleOfFour(t *testing.T) {
	for n := 0; n <= MaxULPDU; n++ {
		pad, total := Pad(n), FPDULen(n)
		if pad < 0 || pad > 3 || (LenFieldLen+n+pad)%4 != 0 || total != LenFieldLen+n+pad+CRCLen {
			t.Fatalf("ulpdu %d: pad %d, fpdu %d", n, pad, total)
		}
	}
}

func TestMULPDU(t *testing.T) {
	for _, c := range []struct {
		emss    int
		markers bool
		want    int
	}{
		{1460, false, 1454},
		{1448, false, 1442},
		{1447, false, 1438}, // EMSS mod 4 is taken off
		{1460, true, 1442},  // three markers
		{1024, true, 1010},  // two
		{1025, true, 1006},  // three at the worst, and one octet of EMSS mod 4
		{134, false, 128 - 2},
		{136, false, 130},
		{100, false, MinMULPDU},
		{0, true, MinMULPDU},
		{-1, false, MinMULPDU},
		{65483, false, 65474},
		{1 << 20, false, MaxULPDU},
		{65536, true, 65018},
		{1 << 20, true, 65018},
	} {
		want := max(c.want, MinMULPDU)
		if got := MULPDU(c.emss, c.markers); got != want {
			t.Errorf("MULPDU(%d, %t) = %d, want %d", c.emss, c.markers, got, want)
		}
	}
}

// The FPDU of a full ULPDU fits the segment it was computed for, wherever the markers fall.
func TestMULPDUFits(t *testing.T) {
	ulpdu := make([]byte, MaxULPDU)
	buf := make([]byte, 0, 1<<17)
	for emss := 160; emss <= 65536; emss += 331 {
		if got := FPDULen(MULPDU(emss, false)); got > emss {
			t.Fatalf("emss %d: fpdu of %d octets", emss, got)
		}
		for pos := uint(0); pos < MarkerInterval; pos += 4 {
			w := MarkerWriter{pos: pos}
			if got := len(w.Append(buf, ulpdu[:MULPDU(emss, true)], false)); got > emss {
				t.Fatalf("emss %d, stream at %d: marked fpdu of %d octets", emss, pos, got)
			}
		}
	}
}

// The FPDUs of the vector list without markers, as ULPDU and wire octets. V24 is V8 with the CRC inverted.
var plainVectors = []struct{ name, ulpdu, wire string }{
	{"V6 rtr write", "c140 00000001 00000000 00000000", "000ec140 00000001 00000000 00000000 ebd34c5f"},
	{"V8 send hello", "4143 00000000 00000000 00000001 00000000 68656c6c 6f",
		"00174143 00000000 00000000 00000001 00000000 68656c6c 6f000000 b990b10c"},
	{"V9 send nothing", "4143 00000000 00000000 00000001 00000000",
		"00124143 00000000 00000000 00000001 00000000 587be8c4"},
	{"V10 write hello", "c140 11223344 00000000 00001000 68656c6c 6f",
		"0013c140 11223344 00000000 00001000 68656c6c 6f000000 cadc4b88"},
}

func TestAppendFPDUVectors(t *testing.T) {
	for _, v := range plainVectors {
		ulpdu, wire := unhex(t, v.ulpdu), unhex(t, v.wire)
		if got := AppendFPDU(nil, ulpdu, true); !bytes.Equal(got, wire) {
			t.Errorf("%s: got %x, want %x", v.name, got, wire)
		}
		clear(wire[len(wire)-CRCLen:])
		if got := AppendFPDU(nil, ulpdu, false); !bytes.Equal(got, wire) {
			t.Errorf("%s without crc: got %x, want %x", v.name, got, wire)
		}
	}
}

func TestAppendFPDUKeepsWhatIsThere(t *testing.T) {
	got := AppendFPDU([]byte("before"), []byte("x"), true)
	if !bytes.HasPrefix(got, []byte("before")) || !bytes.Equal(got[6:], AppendFPDU(nil, []byte("x"), true)) {
		t.Errorf("got %x", got)
	}
}

func TestAppendRefusesALongULPDU(t *testing.T) {
	long := make([]byte, MaxULPDU+1)
	for name, f := range map[string]func(){
		"AppendFPDU":          func() { AppendFPDU(nil, long, true) },
		"MarkerWriter.Append": func() { new(MarkerWriter).Append(nil, long, true) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s took a ulpdu of %d octets", name, len(long))
				}
			}()
			f()
		}()
	}
}

func TestFramingDoesNotAllocate(t *testing.T) {
	ulpdu := make([]byte, 1400)
	buf := make([]byte, 0, 2048)
	var w MarkerWriter
	d := NewDeframer(true, true)
	rx := new(MarkerWriter)
	stream := make([]byte, 0, 2048)
	for name, f := range map[string]func(){
		"AppendFPDU":          func() { AppendFPDU(buf, ulpdu, true) },
		"MarkerWriter.Append": func() { w.Append(buf, ulpdu, true) },
		"Deframer": func() {
			b := rx.Append(stream, ulpdu, true)
			for len(b) > 0 {
				b = b[d.Feed(b):]
			}
			if _, ok, err := d.Next(); !ok || err != nil {
				t.Fatalf("Next: %t, %v", ok, err)
			}
		},
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times a call", name, got)
		}
	}
}

// TestCRCAgreesWithTheLibrary at every length around the folding blocks, every alignment and state.
func TestCRCAgreesWithTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 70000)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	check := func(state uint32, p []byte) {
		t.Helper()
		if got, want := CRC(state, p), crc32.Update(state, castagnoli, p); got != want {
			t.Fatalf("CRC(%08x, %d octets) = %08x, want %08x", state, len(p), got, want)
		}
	}
	for n := range 2200 {
		check(r.Uint32(), b[n%64:n%64+n])
	}
	for range 500 {
		off := r.IntN(64)
		check(r.Uint32(), b[off:off+r.IntN(len(b)-off)])
	}
	whole := CRC(0, b)
	for range 100 {
		cut := r.IntN(len(b))
		if got := CRC(CRC(0, b[:cut]), b[cut:]); got != whole {
			t.Fatalf("cut at %d: %08x, want %08x", cut, got, whole)
		}
	}
	check(0, make([]byte, 65536))
	check(^uint32(0), make([]byte, 65536))
}

func FuzzCRC(f *testing.F) {
	f.Add(uint32(0), []byte("123456789"), uint16(0))
	f.Add(uint32(5), []byte{1}, uint16(3000))
	f.Fuzz(func(t *testing.T, state uint32, b []byte, repeat uint16) {
		for len(b) > 0 && len(b) < int(repeat) {
			b = append(b, b...)
		}
		if got, want := CRC(state, b), crc32.Update(state, castagnoli, b); got != want {
			t.Fatalf("CRC(%08x, %d octets) = %08x, want %08x", state, len(b), got, want)
		}
	})
}
