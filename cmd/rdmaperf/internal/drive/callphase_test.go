package drive

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

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

// Of callers that fail beside each other the first one is reported; what arrived changed goes
// before all, and is not forgotten for what fails behind it.
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

// calls of so many ns.
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
