package drive

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// No length of data is that of a notice, and every notice is understood.
func TestNoticesAreToldFromData(t *testing.T) {
	for size := 1; size < 100; size++ {
		sh := &engine.Shape{Point: engine.Point{Size: size}}
		seen := map[int]bool{size: true}
		for n := range numNotices {
			length := lengthBetween(sh, n)
			if got, ok := noticeBetween(sh, length); !ok || got != n || seen[length] || length > noticeReach || length > sh.Stride() {
				t.Errorf("size %d: notice %d has %d bytes, read as %d, %v", size, n, length, got, ok)
			}
			seen[length] = true
		}
		for length := range 2 * engine.SlotAlign {
			if _, ok := noticeBetween(sh, length); ok != (seen[length] && length != size) {
				t.Errorf("size %d: %d bytes are a notice: %v", size, length, ok)
			}
		}
	}
}
