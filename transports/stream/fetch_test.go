package stream

import (
	"encoding/binary"
	"testing"
)

func TestFetchReadsAWordOfEachWholeLine(t *testing.T) {
	const line = 64
	for lines := range 10 {
		for _, rest := range []int{0, 1, line - 1} {
			b := make([]byte, lines*line+rest)
			want := uint64(0)
			for i := range lines {
				v := uint64(1) << (5 * i)
				binary.NativeEndian.PutUint64(b[i*line:], v)
				want += v
			}
			if got := Fetch(b); got != want {
				t.Errorf("%d lines and %d bytes: the words of %#x, want %#x", lines, rest, got, want)
			}
		}
	}
	if Fetch(nil) != 0 {
		t.Error("nothing has a sum")
	}
}
