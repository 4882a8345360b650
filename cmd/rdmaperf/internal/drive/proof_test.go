package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// Any byte of a message that is not its own is named, in its number and behind it, at any length.
func TestMatchMessageNamesTheByte(t *testing.T) {
	const number = 0x0102030405060708
	state := engine.PatternState(3, 1, 2, 3)
	for size := range 40 {
		b := make([]byte, size)
		engine.FillPattern(b, state)
		PutNumber(b, number)
		if i, _ := matchMessage(b, number, state); i >= 0 {
			t.Fatalf("%d bytes: byte %d differs", size, i)
		}
		for i, right := range b {
			b[i] ^= 0x40
			if at, want := matchMessage(b, number, state); at != i || want != right {
				t.Fatalf("%d bytes, byte %d changed: %d, %#x, want %#x", size, i, at, want, right)
			}
			b[i] = right
		}
	}
}
