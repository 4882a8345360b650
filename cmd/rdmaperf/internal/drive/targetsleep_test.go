package drive

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// A target that may sleep does so while nothing comes, for a part of what it has receives for.
func TestATargetSleepsWhileNothingComes(t *testing.T) {
	for _, c := range []struct {
		took int64 // of 64 messages
		want []int64
	}{{64 * 100_000, []int64{400_000, 400_000, 262_500}}, {64 * leastSleep / 4,
		[]int64{leastSleep, leastSleep, 100_000}}, {64 * (leastSleep/4 - 1), nil}} {
		got := sleeping(t, func() {
			_, w, l := pulled(&engine.Shape{Point: engine.Point{Op: "send", Size: 64}, RecvDepth: 512, Slots: 4,
				Moderation: 1}, engine.SideServer)
			turn := 0
			w.Sleeps = true
			err := Turns(w, w.Lanes, func(*engine.Lane) error {
				switch turn++; turn {
				case 1, 4:
					w.Ops += 64
					time.Sleep(time.Duration(c.took))
				case 6:
					w.Stop.Store(engine.StopSoon)
				}
				return nil
			})
			if err != nil || l == nil || w.End == 0 {
				t.Errorf("%v, ended at %d", err, w.End)
			}
		})
		if len(got) > 3 {
			got = got[:3]
		}
		if len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || got[1] != c.want[1]) {
			t.Errorf("64 messages in %d ns: sleeps of %v, want %v", c.took, got, c.want)
		}
	}
}
