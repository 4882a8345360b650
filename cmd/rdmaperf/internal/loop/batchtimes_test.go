package loop

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A step that the provider did not begin is taken by Post and Poll, and timed as it is.
func TestAStepThatIsLeftIsTakenAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine.RestartClock()
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
		if err := w.eachBatch(&alone, l); err != nil || w.Ops != w.Lim.Ops || len(p.posted) != 1 || p.posted[0].Local != uint64(l.at(3)) {
			t.Errorf("%v, %d round trips, posted %+v, want the third", err, w.Ops, p.posted)
		}
		if s := w.Rec.Snapshot(); s.Max != 700 || s.Min != 100 || s.Mean != float64(700+100*(w.Lim.Ops-1))/float64(w.Lim.Ops) {
			t.Errorf("%+v, want one of 700 ns and else 100", s)
		}
		p.calls, w.Ops = 0, 0
		p.room, p.refuse = 0, errors.New("broken")
		if err := w.eachBatch(&alone, l); !errors.Is(err, p.refuse) || w.Ops != 0 {
			t.Errorf("%v, %d round trips, want %v", err, w.Ops, p.refuse)
		}
	})
	engine.RestartClock()
}

// A window whose time is over exactly with a batch ends with it.
func TestABatchMayEndWithItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine.RestartClock()
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
	engine.RestartClock()
}
