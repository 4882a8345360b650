package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// No length of data is that of a control message, and every control message is understood.
func TestControlMessagesAreNoData(t *testing.T) {
	for size := 1; size < 100; size++ {
		sh := &engine.Shape{Point: engine.Point{Size: size}}
		seen := map[int]bool{size: true}
		for n := range numControls {
			length := controlLen(sh, n)
			if got, ok := controlOf(sh, length); !ok || got != n || seen[length] || length > controlReach ||
				length > sh.Stride() {
				t.Errorf("size %d: control message %d has %d bytes, read as %d, %v", size, n, length, got, ok)
			}
			seen[length] = true
		}
		for length := range 2 * engine.SlotAlign {
			if _, ok := controlOf(sh, length); ok != (seen[length] && length != size) {
				t.Errorf("size %d: %d bytes are a control message: %v", size, length, ok)
			}
		}
	}
}
