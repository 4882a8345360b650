package bench

import "testing"

func TestPatternsTellTheirInputsApart(t *testing.T) {
	const n = 4099 // not a multiple of 8
	base := patternState(1, 1, 0, 0)
	want := make([]byte, n)
	fillPattern(want, base)
	if i, _ := matchPattern(want, base); i != -1 {
		t.Fatalf("a filled buffer differs from its own pattern at %d", i)
	}
	for name, other := range map[string]uint64{
		"seed": patternState(2, 1, 0, 0), "generation": patternState(1, 2, 0, 0),
		"lane": patternState(1, 1, 1, 0), "slot": patternState(1, 1, 0, 1),
	} {
		if i, _ := matchPattern(want, other); i < 0 || i > 8 {
			t.Errorf("another %s: first difference at %d, want one in the first bytes", name, i)
		}
	}
}

func TestMatchPatternNamesTheByte(t *testing.T) {
	b := make([]byte, 77)
	state := patternState(3, 1, 2, 3)
	fillPattern(b, state)
	for i := range b {
		right := b[i]
		b[i] ^= 0x40
		if at, want := matchPattern(b, state); at != i || want != right {
			t.Fatalf("byte %d changed: matchPattern = %d, %#x, want %d, %#x", i, at, want, i, right)
		}
		b[i] = right
	}
}

func TestFirstNonZeroFindsEveryPosition(t *testing.T) {
	b := make([]byte, 37)
	if i := firstNonZero(b); i != -1 {
		t.Fatalf("zeros: %d, want -1", i)
	}
	for i := range b {
		b[i] = 1
		if at := firstNonZero(b); at != i {
			t.Fatalf("byte %d set: %d", i, at)
		}
		b[i] = 0
	}
}

// Stale data of a slot's last message must be visible in its last byte.
func TestStampsOfOneSlotDiffer(t *testing.T) {
	for iter := uint64(1); iter < 2000; iter++ {
		for back := uint64(1); back <= 16 && back < iter; back++ {
			if stampOf(iter) == stampOf(iter-back) {
				t.Fatalf("messages %d and %d have the same stamp", iter, iter-back)
			}
		}
		if stampOf(iter) == 0 {
			t.Fatalf("message %d looks like a cleared slot", iter)
		}
	}
}
