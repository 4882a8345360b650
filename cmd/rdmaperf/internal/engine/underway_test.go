package engine

import (
	"testing"
	"time"
)

// A client waits as long as its timeout, or as long as what is under way takes at 10 MB/s.
func TestWhatIsUnderWayTakesTime(t *testing.T) {
	for bytes, want := range map[int64]time.Duration{16e6: 2 * time.Second, 100e6: 10 * time.Second} {
		w := &Worker{Sh: &Shape{Timeout: 2 * time.Second}}
		if w.UnderWay(bytes); w.stall != int64(want) {
			t.Errorf("%d bytes: %v, want %v", bytes, time.Duration(w.stall), want)
		}
	}
}
