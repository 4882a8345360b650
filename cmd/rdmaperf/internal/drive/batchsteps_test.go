package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Round trips that ended before a stop count; those that ended with a broken session do not.
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

// The answers that are prepared are those of the messages that come next, with their numbers as immediates.
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

// Of writes each that was answered counts; a turn in which nothing came is for a check.
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

// A step that the provider did not begin is taken by Post and Poll, and timed as it is.
func TestAStepThatIsLeftIsTakenAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		time.Sleep(time.Second) // no time is as long as the clock says
		p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
		p.steps = func(call int, vs []transports.PingPongStep) (int, error) {
			switch call {
			case 1:
				met(vs, 2, 100)
				vs[2].HasAsk = true
			case 3:
				met(vs, len(vs), 100)
			}
			return 0, nil
		}
		p.onPoll = func(int) { time.Sleep(700); p.complete() }
		w.Lim.Ops = int64(len(l.rounds))
		if err := w.eachBatch(&alone, l); err != nil || w.Ops != w.Lim.Ops || len(p.posted) != 1 ||
			p.posted[0].Local != uint64(l.at(3)) {
			t.Errorf("%v, %d round trips, posted %+v, want the third", err, w.Ops, p.posted)
		}
		if s := w.Rec.Snapshot(); s.Max != 700 || s.Min != 100 ||
			s.Mean != float64(700+100*(w.Lim.Ops-1))/float64(w.Lim.Ops) {
			t.Errorf("%+v, want one of 700 ns and else 100", s)
		}
		p.calls, w.Ops = 0, 0
		p.room, p.refuse = 0, errors.New("broken")
		if err := w.eachBatch(&alone, l); !errors.Is(err, p.refuse) || w.Ops != 0 {
			t.Errorf("%v, %d round trips, want %v", err, w.Ops, p.refuse)
		}
	})
}

// A window whose time is over exactly with a batch ends with it.
func TestABatchMayEndWithItsWindow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
		p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
			at := engine.Now()
			time.Sleep(time.Duration(100 * len(vs)))
			for i := range vs {
				vs[i].HasAsk, vs[i].Met, vs[i].Start, vs[i].Took = false, true, at+int64(100*i), 100
			}
			return 0, nil
		}
		k := int64(len(l.rounds))
		w.Lim.Dur = time.Duration(2 * k * 100)
		if err := w.eachBatch(&alone, l); err != nil || w.Ops != 2*k || w.End-w.Begin != int64(w.Lim.Dur) {
			t.Errorf("%v, %d round trips in %d ns, want %d in %v", err, w.Ops, w.End-w.Begin, 2*k, w.Lim.Dur)
		}
	})
}

// A write's answer is awaited at the last byte of its slot, which is another one than before.
func TestAStepOfWritesWatchesItsLastByte(t *testing.T) {
	p, w, l := pingPongOn(t, "write", engine.SideClient, engine.ArrivalMemory)
	l.iter = 5
	last := func(i int) int { return l.at(uint64(6+i)) + l.Sh.Size - 1 }
	for i := range l.rounds {
		l.Mem[last(i)] = byte(100 + i)
	}
	p.steps = func(call int, vs []transports.PingPongStep) (int, error) {
		for i, v := range vs {
			if at := i + len(l.steps) - len(vs); v.Until != rdma.UntilByte || v.Watch != uint64(last(at)) ||
				v.Was != byte(100+at) {
				t.Errorf("call %d, step %d watches %d for another than %d, want %d and %d", call, at, v.Watch, v.Was,
					last(at), 100+at)
			}
		}
		switch call {
		case 1: // nothing was begun
		case 2:
			met(vs, len(vs), 100)
		}
		return 0, nil
	}
	p.onPoll = func(n int) {
		if n == 3 {
			l.Mem[last(0)]++
		}
	}
	x := exchange{divide: 1, until: rdma.UntilByte, begin: beginWrite, verify: alone.verify}
	w.Lim.Ops = int64(len(l.rounds))
	if err := w.eachBatch(&x, l); err != nil || p.polls != 3 || len(p.posted) != 1 ||
		p.posted[0].Remote != uint64(l.at(6)) {
		t.Errorf("%v, %d polls, posted %+v, want the first, answered at the third", err, p.polls, p.posted)
	}
	p, w, l = pingPongOn(t, "write", engine.SideServer, engine.ArrivalMemory)
	l.iter = 40 // in the second round of the slots
	p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
		for i, v := range vs {
			iter := uint64(41 + i)
			if at := l.at(iter); v.Watch != uint64(at+l.Sh.Size-1) || v.Was != l.before(iter) ||
				v.Answer.Local != uint64(at) {
				t.Errorf("answer %d watches %d for another than %d, and leaves from %d", i, v.Watch, v.Was,
					v.Answer.Local)
			}
		}
		w.Stop.Store(engine.StopSoon)
		return 0, nil
	}
	if err := answerMemory(w, l); err != engine.ErrStop {
		t.Error(err)
	}
}

// Messages are told by their receives: nothing is watched for them.
func TestAStepOfMessagesWatchesNothing(t *testing.T) {
	p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
	p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
		for i, v := range vs {
			if v.Until != rdma.UntilSend || v.Watch != 0 {
				t.Errorf("step %d watches %d", i, v.Watch)
			}
		}
		met(vs, len(vs), 100)
		return 0, nil
	}
	w.Lim.Ops = 2
	if err := w.eachBatch(&alone, l); err != nil || w.Ops != 2 {
		t.Errorf("%v, %d round trips", err, w.Ops)
	}
}
