package engine

import "testing"

func TestPatternsTellTheirInputsApart(t *testing.T) {
	const n = 4099 // not a multiple of 8
	base := PatternState(1, 1, 0, 0)
	want := make([]byte, n)
	FillPattern(want, base)
	if i, _ := MatchPattern(want, base); i != -1 {
		t.Fatalf("a filled buffer differs from its own pattern at %d", i)
	}
	for name, other := range map[string]uint64{
		"seed": PatternState(2, 1, 0, 0), "generation": PatternState(1, 2, 0, 0),
		"lane": PatternState(1, 1, 1, 0), "slot": PatternState(1, 1, 0, 1),
	} {
		if i, _ := MatchPattern(want, other); i < 0 || i > 8 {
			t.Errorf("another %s: first difference at %d, want one in the first bytes", name, i)
		}
	}
}

// From any byte of a sequence on, at any length, the first wrong byte is named.
func TestMatchPatternAtNamesTheByte(t *testing.T) {
	all := make([]byte, 120)
	state := PatternState(3, 1, 2, 3)
	FillPattern(all, state)
	for at := range 20 {
		for n := range 80 {
			b := append([]byte(nil), all[at:at+n]...)
			if i, _ := MatchPatternAt(b, state, at); i >= 0 {
				t.Fatalf("%d bytes from %d: byte %d differs", n, at, i)
			}
			for i := range b {
				b[i] ^= 0x40
				if got, want := MatchPatternAt(b, state, at); got != i || want != all[at+i] {
					t.Fatalf("%d bytes from %d, byte %d changed: %d, %#x", n, at, i, got, want)
				}
				b[i] ^= 0x40
			}
		}
	}
}

func TestFirstNonZeroFindsEveryPosition(t *testing.T) {
	b := make([]byte, 37)
	if i := FirstNonZero(b); i != -1 {
		t.Fatalf("zeros: %d, want -1", i)
	}
	for i := range b {
		b[i] = 1
		if at := FirstNonZero(b); at != i {
			t.Fatalf("byte %d set: %d", i, at)
		}
		b[i] = 0
	}
}

// The number of any word of a sequence is known from it.
func TestWordsTellTheirNumbers(t *testing.T) {
	state := PatternState(3, 1, 2, 3)
	for _, i := range []int{0, 1, 2, 4095, 1 << 20, 1<<62 + 12345} {
		if n := WordNumber(state, Word(state, i)); n != uint64(i) {
			t.Errorf("word %d has number %d", i, n)
		}
	}
}
