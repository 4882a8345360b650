package sched_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestAgainstModel compares random posts and device work with the model; in half of the runs one fails.
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

// same compares the bytes of a request that has ended.
func (m *model) same(a *ask) {
	if !a.ended || sends.Has(a.op) {
		return
	}
	dst := m.home
	if a.op == rdma.OpRead {
		dst = m.near
	}
	if !bytes.Equal(dst.Bytes()[a.at:a.at+a.size], a.data()) {
		m.t.Fatalf("request %d: %s of %d bytes in %d parts: data differ", a.id, a.op, a.size, a.parts)
	}
}

// finish lets everything end and looks whether all of it did.
func (m *model) finish() {
	for idle := 0; idle < 3; {
		if m.dev.loop {
			m.receive(m.depth)
		}
		if m.carryOut(1<<20)+m.poll() > 0 {
			idle = -1
		}
		idle++
	}
	if m.far.ended {
		// Where a request waits for the peer alone, only a look at the state finds that the connection is over.
		for idle := 0; idle < sched.LookEvery; idle++ {
			if m.take(1) > 0 {
				idle = -1
			}
		}
	}
	for _, a := range m.asks {
		if a.signaled && !a.told {
			m.t.Fatalf("request %d does not complete by itself: %d of %d bytes posted, %d arrived", a.id, a.posted,
				a.size, a.arrived)
		}
	}
	if m.dev.loop && !m.far.ended && m.came != len(m.msgs) {
		m.t.Fatalf("%d messages received of %d", m.came, len(m.msgs))
	}
	must(m.t, m.qp.Close())
	for m.poll() > 0 {
	}
	for _, a := range m.asks {
		switch {
		case a.signaled && !a.told:
			m.t.Fatalf("request %d never completes: %d of %d bytes posted, %d arrived", a.id, a.posted, a.size,
				a.arrived)
		case !a.told && !a.ended && !(m.dev.local && a.whole):
			m.t.Fatalf("unsignalled request %d ends in silence: %d of %d bytes posted, %d arrived", a.id, a.posted,
				a.size, a.arrived)
		case !m.far.ended && !a.ended:
			m.t.Fatalf("request %d stops at %d of %d bytes", a.id, a.arrived, a.size)
		}
		if !a.flushed {
			m.same(a)
		}
	}
}
