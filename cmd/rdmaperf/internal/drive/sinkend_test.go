package drive

import (
	"context"
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Behind a phase the target holds what came against what was sent: how many, the last of each slot
// that nobody looked at, and what lies around them.
func TestATargetHoldsWhatCame(t *testing.T) {
	bare := func(sh *engine.Shape) { sh.ImmAlone, sh.Size = true, 1 }
	unnumbered := func(sh *engine.Shape) { sh.Row.Numbered = false }
	flip := func(slot, at int) func(*sinkLane) {
		return func(l *sinkLane) { l.Mem[l.Sh.RxSlot(slot)+at] ^= 2 }
	}
	const found = reports.ExitCorruption
	for _, c := range []struct {
		name, op string
		shape    func(*engine.Shape)
		count    int64
		change   func(l *sinkLane)
		code     int
		compared int64
	}{
		{"messages", "send", nil, 21, func(*sinkLane) {}, 0, 0}, {"one lost", "send", nil, 21, func(l *sinkLane) { l.data-- }, found, 0},
		{"behind a message", "send", nil, 21, flip(3, 100), found, 0}, {"at the end of its slot", "send", nil, 21, flip(7, 127), found, 0},
		{"writes", "write", nil, 21, func(l *sinkLane) { l.data = 0 }, 0, 8}, {"writes looked at", "write", nil, 21, func(l *sinkLane) { l.data = 16; flip(6, 0)(l) }, 0, 5},
		{"the oldest", "write", nil, 21, func(l *sinkLane) { l.data = 0; flip(5, 0)(l) }, found, 0}, {"the newest", "write", nil, 21, func(l *sinkLane) { l.data = 16; flip(4, 0)(l) }, found, 4},
		{"behind a write", "write", nil, 21, flip(3, 100), found, 0}, {"where none was", "write", nil, 3, flip(3, 5), found, 0},
		{"numbers alone", "send_imm", bare, 9, func(l *sinkLane) { l.immediates = 9 }, 0, 0}, {"one number lost", "send_imm", bare, 9, func(l *sinkLane) { l.immediates = 8 }, found, 0},
		{"bytes of a number", "send_imm", bare, 9, func(l *sinkLane) { l.immediates = 9; flip(2, 0)(l) }, found, 0},
		{"without numbers", "write", unnumbered, 21, func(*sinkLane) {}, 0, 8}, {"changed without numbers", "write", unnumbered, 21, flip(2, 50), found, 2},
	} {
		_, s, w, l := sinkOn(c.op, c.shape)
		for n := range uint64(c.count) {
			switch slot := int(n) % 8; {
			case l.Sh.ImmAlone:
			case l.Sh.Numbered():
				l.holds(n)
			default:
				engine.FillPattern(l.Mem[l.Sh.RxSlot(slot):][:100], engine.PatternState(1, l.gen, 0, slot))
			}
		}
		l.data = c.count
		c.change(l)
		if err := s.Verify(l.gen, []engine.LaneCount{{Count: c.count}}); reports.Code(err) != c.code || w.Compared.Numbers != c.compared {
			t.Errorf("%s: %v, %d compared", c.name, err, w.Compared.Numbers)
		}
	}
	_, s, _, l := sinkOn("send", nil)
	if err := s.Verify(l.gen, nil); reports.Code(err) != reports.ExitPeer {
		t.Errorf("nothing said of a queue pair: %v", err)
	}
}

// A target that sleeps does so for the barrier of each session, and then until it is told to end;
// one that is asked for looks listens until then.
func TestASleepingTargetWaitsForItsBarriers(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		p, s, w, l := sinkOn("write", func(sh *engine.Shape) { sh.Verify, sh.Idle = numbered, true })
		barrier := []transports.Done{{Kind: transports.KindRecv}}
		ctx, cancel := context.WithCancel(context.Background())
		w.Ctx = ctx
		p.onPoll = func(n int) {
			if p.done = nil; n == 3 {
				p.done = barrier
			}
			if numbered && n == 10 {
				w.Stop.Store(engine.StopSoon)
			}
		}
		second, _, _, other := sinkOn("write", nil)
		if !numbered {
			w.lanes = append(w.lanes, other)
			second.done = barrier
			second.onPoll = func(int) { cancel() }
		}
		w.End = 0
		if err := s.Loop(w.Worker)(); err != nil || w.End == 0 || l.announced != 1 {
			t.Errorf("numbered %v: %v, ended at %d, told of %d", numbered, err, w.End, l.announced)
		}
		if !numbered && (other.announced != 1 || p.polls != 3 || second.polls != 1) {
			t.Errorf("%d polls, then %d of the second, told of %d", p.polls, second.polls, other.announced)
		}
		cancel()
		p.onPoll, p.lost = nil, errBroken
		w.Stop.Store(0)
		if err := s.Loop(w.Worker)(); !errors.Is(err, errBroken) {
			t.Errorf("numbered %v: %v, want %v", numbered, err, errBroken)
		}
		p.lost = nil
		w.Stop.Store(engine.StopSoon)
		if err := s.Loop(w.Worker)(); err != nil {
			t.Errorf("numbered %v: told to end before its barrier: %v", numbered, err)
		}
	}
}
