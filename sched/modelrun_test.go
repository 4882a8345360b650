package sched_test

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"pgregory.net/rapid"
)

// TestAgainstModel posts at random, lets the device work at random, and compares with the model: order, window,
// completions, bytes. In half of the runs a request fails somewhere.
func TestAgainstModel(t *testing.T) {
	for _, p := range sched.Policies() {
		for _, local := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/local=%v", p, local), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { random(t, p, local) })
			})
		}
	}
}

func random(t *rapid.T, p sched.Policy, local bool) {
	cfg := sched.Config{Policy: p, Slice: 1 << 10, Window: 1 << rapid.IntRange(10, 13).Draw(t, "window")}
	if rapid.Bool().Draw(t, "cut sends") && p != sched.FIFO {
		cfg.Sends, cfg.Room = sched.CutSends, 8<<10
	}
	if rapid.Bool().Draw(t, "cut immediates") {
		cfg.Immediates = sched.LastImmediates
	}
	failAfter := -1
	if rapid.Bool().Draw(t, "fail") {
		failAfter = rapid.IntRange(0, 60).Draw(t, "fail after")
	}
	m := newModel(t, cfg, local, failAfter)
	defer m.free()
	if rapid.Bool().Draw(t, "loose") {
		sched.Loosen(m.qp, rapid.Bool().Draw(t, "due"))
	}
	for range rapid.IntRange(1, 80).Draw(t, "steps") {
		step := rapid.IntRange(0, 4).Draw(t, "step")
		if m.dev.loop && rapid.Bool().Draw(t, "receive") {
			m.receive(rapid.IntRange(1, 3).Draw(t, "receives"))
		}
		switch step {
		case 0, 1, 2:
			m.post()
		case 3:
			m.carryOut(rapid.IntRange(1, 6).Draw(t, "work"))
		default:
			m.poll()
		}
	}
	ended := m.far.ended
	m.finish()
	// One error at the device is one error to the user, if it had anything of the user's to tell.
	if m.far.ended && ended && !local && m.errs > 1 {
		t.Fatalf("%d real errors told", m.errs)
	}
}
