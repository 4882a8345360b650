package sched

import (
	"testing"
	"testing/synctest"
	"time"
)

// A loose window wants proof once a tenth of a second has passed since the last, to the nanosecond.
func TestProofIsDueATenthOfASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{proveEvery - 1: false, proveEvery: true} {
			w := marked(true)
			w.loose = true
			w.mark()
			time.Sleep(after)
			if w.hand(); w.want != want {
				t.Errorf("after %v proof is wanted: %v", after, w.want)
			}
		}
	})
}

// A window is narrow until a tenth of a second has passed since the mark behind the last urgent
// request, to the nanosecond.
func TestNarrowForATenthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for after, want := range map[time.Duration]bool{wideAfter - 1: true, wideAfter: false} {
			w := marked(false)
			w.urgent()
			w.mark()
			time.Sleep(after)
			if w.mark(); w.busy != want {
				t.Errorf("after %v the window is narrow: %v", after, w.busy)
			}
		}
	})
}
