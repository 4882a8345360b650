package drive

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// starting runs a phase of callers in a bubble; during does something beside it.
func starting(t *testing.T, lim engine.Limits, set func(k *Calls), during func(r *engine.Phase),
	check func(k *Calls, o *engine.Outcome), calls ...*heeding) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		m, k := point()
		m.Sh.Words, m.Sh.Timeout = "calls", time.Hour
		k.lead = newCallGroup(CallGroup{Conns: len(calls), Each: 1})
		k.groups = []*callGroup{k.lead}
		for i, c := range calls {
			if c.fail == nil {
				c.fail = func(_ int, ended error) error { return ended }
			}
			k.lead.workers = append(k.lead.workers, &callWorker{k: k, c: c, t: k.lead.tallies[i], g: k.lead, index: i,
				conn: i})
		}
		k.workers = k.lead.workers
		if set != nil {
			set(k)
		}
		r := k.start(engine.GenMeasure, lim)
		if during != nil {
			during(r)
		}
		check(k, r.Wait())
	})
}

// A window of time is followed while it lasts, with a series of its own or without; one of so many calls is not.
func TestCallsAreFollowedWhileTheyLast(t *testing.T) {
	for _, c := range []struct {
		followed bool
		interval time.Duration
		lim      engine.Limits
		live     bool // somebody heard of it
		series   bool
	}{
		{true, 0, engine.Limits{Dur: 5000}, true, false}, {true, 1000, engine.Limits{Dur: 5000}, true, true},
		{false, 1000, engine.Limits{Dur: 5000}, false, true}, {false, 0, engine.Limits{Dur: 5000}, false, false},
		{true, 0, engine.Limits{Ops: 50}, false, false}, {false, 1000, engine.Limits{Ops: 50}, false, false},
	} {
		live := engine.NewLive(1000)
		starting(t, c.lim, func(k *Calls) {
			if k.interval = c.interval; c.followed {
				k.live = live
			}
		}, nil, func(k *Calls, o *engine.Outcome) {
			if o.Err != nil || o.Ops != 50 || o.Window != 5000 || (o.Series != nil) != c.series {
				t.Errorf("%+v: %v, %d calls in %v, a series: %v", c, o.Err, o.Ops, o.Window, o.Series != nil)
			}
			if kept := k.lead.tallies[0].series != nil; kept != (c.live || c.series) {
				t.Errorf("%+v: intervals are kept: %v", c, kept)
			}
			p, every, ok := live.Next()
			if ok != c.live || ok && (p.Operations != 9 || every != 1000) { // the tenth ends with the interval
				t.Errorf("%+v: %v, %d calls in the first interval of %v", c, ok, p.Operations, every)
			}
		}, calls(100))
	}
}

// A phase that is asked to end soon has the calls under way come to their end, and is no failure;
// one that is to end now ends them.
func TestCallsUnderWayEndWithTheirPhase(t *testing.T) {
	for how, want := range map[uint32]struct{ ops, window int64 }{engine.StopSoon: {3, 3000},
		engine.StopNow: {2, 2000}} {
		starting(t, engine.Limits{Ops: 9}, nil, func(r *engine.Phase) {
			time.Sleep(2500)
			r.Halt(how)
			if how == engine.StopNow {
				if <-r.Done; engine.Now() != 2500 {
					t.Errorf("it ends at %d, want at once", engine.Now())
				}
			}
		}, func(_ *Calls, o *engine.Outcome) {
			if o.Err != nil || o.Ops != want.ops || o.Window != time.Duration(want.window) {
				t.Errorf("stop %d: %v, %d calls in %v, want %d in %d", how, o.Err, o.Ops, o.Window, want.ops,
					want.window)
			}
		}, calls(1000))
	}
}

// A call that fails ends the calls of all others, whose ends are no failures; what one of them
// finds changed meanwhile goes before it.
func TestTheCallThatFailedIsTold(t *testing.T) {
	lost := errors.New("lost")
	for _, found := range []error{nil, &reports.ExitError{Code: reports.ExitCorruption, Err: errors.New("changed")}} {
		first, second := calls(1000), calls(10_000)
		first.fail = func(n int, _ error) error {
			if n == 3 {
				return lost
			}
			return nil
		}
		second.fail = func(_ int, ended error) error {
			if found != nil {
				return found
			}
			return ended
		}
		want := cmp.Or(found, lost).Error() // what is reported of a call has its text
		starting(t, engine.Limits{Ops: 9}, nil, nil, func(_ *Calls, o *engine.Outcome) {
			if o.Err == nil || !strings.Contains(o.Err.Error(), want) || o.Ops != 2 || engine.Now() != 3000 {
				t.Errorf("%v with %d calls after %d ns, want %v", o.Err, o.Ops, engine.Now(), want)
			}
		}, first, second)
	}
}
