package sched_test

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// lowShare is the share of the device that a class of 0 gets, which always has work,
// beside a class of 7 that offers load percent of what the device carries. Both
// classes are of one queue pair; the first half of the turns is not counted.
func lowShare(t *testing.T, cfg sched.Config, load int) float64 {
	const (
		turns, carried = 400, 20 // requests that the device carries out a turn
		lows, highs    = 2 * carried, 3 * carried
	)
	cfg.Slice, cfg.Window = kib, carried*kib
	r := newRig(t, cfg, lows+highs, 4)
	low, high := r.wr(1, rdma.OpWrite, 0, kib), r.wr(2, rdma.OpWrite, 7, kib)
	out, done, owed := [3]int{}, 0, 0
	for turn := range turns {
		for owed += load * carried; owed >= 100 && out[2] < highs; owed -= 100 {
			r.post(high)
			out[2]++
		}
		owed = min(owed, 100*carried) // who cannot post in time does not catch up without end
		for ; out[1] < lows; out[1]++ {
			r.post(low)
		}
		r.far.carryOut(carried)
		for _, wc := range r.poll() {
			out[wc.ID]--
			if wc.ID == 1 && turn >= turns/2 {
				done++
			}
		}
	}
	return float64(done) / (carried * turns / 2)
}

// What a saturating high class leaves to a low one is the policy's rule: nothing with strict priority, and a floor with
// the others. Below saturation every policy leaves what is not used.
func TestStarvationIsBoundedByThePolicy(t *testing.T) {
	weights := [sched.Priorities]int{1, 1, 1, 1, 1, 1, 1, 4} // a fifth of the device for class 0
	for name, c := range map[string]struct {
		cfg         sched.Config
		least, most float64 // of the low class's share beside 120 %
	}{
		"strict": {sched.Config{}, 0, 0},
		"drr":    {sched.Config{Policy: sched.DRR, Weights: weights}, 0.15, 0.25},
		"aging":  {sched.Config{Policy: sched.Aging, AgeEvery: time.Microsecond}, 0.01, 1},
		"edf": {sched.Config{Policy: sched.EDF, Deadlines: [sched.Priorities]time.Duration{7: time.Microsecond,
			0: 8 * time.Microsecond, 1: 1000, 2: 1000, 3: 1000, 4: 1000, 5: 1000, 6: 1000}}, 0.01, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, load := range []int{0, 40, 80} {
				if got, free := lowShare(t, c.cfg, load), 1-float64(load)/100; got < free-0.05 || got > 1 {
					t.Errorf("%.3f of the device beside %d %%, want %.2f", got, load, free)
				}
			}
			if got := lowShare(t, c.cfg, 120); got < c.least || got > c.most {
				t.Errorf("%.3f of the device beside 120 %%, want %v to %v", got, c.least, c.most)
			}
		})
	}
}
