package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
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

// A phase that is to end soon has the calls under way come to their end; one that is to end now ends them.
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

// A call that fails ends the calls of all others; what one of them finds changed meanwhile goes before it.
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

// Dials that another one's failure ended say nothing of why.
func TestTheDialThatFailedIsTold(t *testing.T) {
	refused, reset := errors.New("refused"), errors.New("reset")
	ended := fmt.Errorf("dial: %w", context.Canceled)
	for _, c := range []struct {
		errs []error
		want error
	}{
		{nil, nil}, {[]error{nil, nil}, nil},
		{[]error{nil, refused, nil}, refused}, {[]error{refused, reset}, refused},
		{[]error{ended, refused, ended}, refused}, {[]error{refused, ended}, refused}, {[]error{nil, ended}, ended},
	} {
		if got := cause(c.errs); got != c.want {
			t.Errorf("%v: %v, want %v", c.errs, got, c.want)
		}
	}
}

// Of callers that fail the first is reported; what arrived changed goes before all.
func TestCorruptionGoesBeforeWhatFailedFirst(t *testing.T) {
	lost, gone := errors.New("lost"), errors.New("gone")
	changed := &reports.ExitError{Code: reports.ExitCorruption, Err: errors.New("changed")}
	for _, c := range []struct{ errs, want error }{
		{errors.Join(lost, gone), lost}, {errors.Join(lost, changed), changed}, {errors.Join(changed, lost), changed},
	} {
		r := &callRun{}
		r.Cancel = func() {}
		for _, e := range c.errs.(interface{ Unwrap() []error }).Unwrap() {
			r.fail(e)
		}
		if r.err != c.want {
			t.Errorf("%v: %v is reported, want %v", c.errs, r.err, c.want)
		}
		if r.Stop.Load() == 0 {
			t.Errorf("%v: the others go on", c.errs)
		}
	}
}

// heeding is a caller whose calls end with their phase, and fail as a test says.
type heeding struct {
	timed
	ctx  context.Context
	fail func(n int, ended error) error
}

func (c *heeding) Begin(ctx context.Context, _ int) error { c.ctx = ctx; return nil }
func (c *heeding) Call() error {
	n := len(c.begun) + 1
	c.begun = append(c.begun, engine.Now())
	select {
	case <-time.After(time.Duration(c.takes[0])):
	case <-c.ctx.Done():
	}
	return c.fail(n, c.ctx.Err())
}

func calls(ns int64) *heeding { return &heeding{timed: timed{takes: []int64{ns}}} }

// The timeout begins with the check that saw the last answer, or the first check, and is over behind it, not at it.
func TestTheTimeoutOfCallsBeginsWithALook(t *testing.T) {
	for answered := range int64(2) {
		guarding(t, CallGroup{Conns: 1, Each: 1}, answered, func(k *Calls, r *callRun) {
			for check := 1; check <= 12; check++ { // the first after a tenth of a second, so the eleventh a second later
				time.Sleep(time.Second / 10)
				synctest.Wait()
				if got := r.stalled.Load(); got != (check == 12) {
					t.Errorf("%d answered, check %d: ended %v", answered, check, got)
				}
			}
		})
	}
}
