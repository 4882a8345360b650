package drive

import (
	"errors"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Round trips that ended before a stop count; where the session broke, none that ended with it
// does, for nobody compared them.
func TestStepsBeforeAStopCount(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		err  error
		want int64
	}{"stopped": {engine.ErrStop, 3}, "broken": {broken, 0}} {
		p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
		p.steps = func(call int, vs []transports.PingPongStep) (int, error) {
			if call == 1 {
				met(vs, 3, 100)
				return 0, nil
			}
			if c.err == engine.ErrStop {
				w.Stop.Store(engine.StopSoon)
				return 0, nil
			}
			return 0, c.err
		}
		if err := w.eachBatch(&alone, l); !errors.Is(err, c.err) || w.Ops != c.want || w.Rec.Count() != c.want {
			t.Errorf("%s: %v, %d operations, %d samples, want %d", name, err, w.Ops, w.Rec.Count(), c.want)
		}
	}
}

// The answers that are prepared are those of the messages that come next, slot by slot, with
// their numbers as immediates.
func TestAnswersOfMessagesAreThoseThatComeNext(t *testing.T) {
	p, w, l := pingPongOn(t, "write_imm", engine.SideServer, engine.ArrivalMessage)
	l.iter, l.next = 70, uint32(l.Sh.Slots)-2
	p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
		for i, v := range vs {
			slot, imm := (uint32(l.Sh.Slots)-2+uint32(i))%uint32(l.Sh.Slots), uint32(71+i)
			if v.Slot != slot || v.Answer.Imm != imm || v.Answer.Local != uint64(l.at(uint64(imm))) ||
				v.Answer.Kind != transports.KindWriteImm {
				t.Errorf("step %d: slot %d, %+v, want slot %d with %d", i, v.Slot, v.Answer, slot, imm)
			}
		}
		w.Stop.Store(engine.StopSoon)
		return 0, nil
	}
	if err := answerMessage(w, l); err != engine.ErrStop || len(l.steps) < 2 {
		t.Errorf("%v, want a check where nothing was met", err)
	}
}

// Of writes that were answered each counts, with room in the queue or without; a turn in which
// nothing came is for a check.
func TestAnswersOfWritesAreCounted(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answered int
		met      bool
		done     []transports.Done
		err      error
		stop     bool
		want     func(err error) bool
	}{
		"answered":     {3, true, nil, nil, false, func(err error) bool { return err == nil }},
		"no room":      {2, true, nil, rdma.ErrQueueFull, false, func(err error) bool { return err == nil }},
		"no room yet":  {0, true, nil, rdma.ErrQueueFull, true, func(err error) bool { return err == nil }},
		"broken":       {0, false, nil, broken, false, func(err error) bool { return errors.Is(err, broken) }},
		"nothing came": {0, false, nil, nil, true, func(err error) bool { return err == engine.ErrStop }},
		"an answer was refused": {0, false, []transports.Done{{Kind: transports.KindWrite,
			Status: rdma.StatusSuccess + 1}}, nil, false,
			func(err error) bool { return err != nil && err != engine.ErrStop }},
	} {
		p, w, l := pingPongOn(t, "write", engine.SideServer, engine.ArrivalMemory)
		p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
			for i := range vs {
				vs[i].HasAnswer, vs[i].Met = i >= c.answered, c.met && i <= c.answered
			}
			return copy(w.Done, c.done), c.err
		}
		if c.stop {
			w.Stop.Store(engine.StopSoon)
		}
		answered := int64(c.answered)
		if err := answerMemory(w, l); !c.want(err) || w.Ops != answered || l.iter != uint64(answered) {
			t.Errorf("%s: %v, %d operations, %d messages, want %d", name, err, w.Ops, l.iter, answered)
		}
	}
}
