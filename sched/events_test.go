package sched_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// eventDevice is a script device with events, that the test raises.
type eventDevice struct{ *scriptDevice }

func (d eventDevice) NewCQ(depth int) (rdma.CQ, error) {
	c, err := d.scriptDevice.NewCQ(depth)
	return &eventCQ{nullCQ: c.(*nullCQ)}, err
}

func (d eventDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	cfg.SendCQ = cfg.SendCQ.(*eventCQ).nullCQ
	return d.scriptDevice.NewQP(cfg)
}

type eventCQ struct {
	*nullCQ
	armed   []bool // by each Arm, whether for solicited completions alone
	refused error  // by Arm
	bounded []bool // by each Wait of one that can end, whether it had a bound of time
	onWait  func(ctx context.Context) error
}

func (c *eventCQ) Arm(solicited bool) error {
	c.armed = append(c.armed, solicited)
	return c.refused
}

func (c *eventCQ) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, bound := ctx.Deadline()
	c.bounded = append(c.bounded, bound)
	return c.onWait(ctx)
}

// errStood ends a wait that nothing else would.
var errStood = errors.New("nothing came")

// eventRig is a rig on a device with events. The queue below stands still unless a test says otherwise.
func eventRig(t *testing.T) (*rig, *eventCQ) {
	t.Helper()
	dev := newScript(false)
	dev.caps.Features |= rdma.FeatEvents | rdma.FeatSolicited
	tier := sched.WithoutKeeper(wrapped(t, eventDevice{dev}, sched.Config{Slice: kib, Window: 2 * kib}))
	r := newRigOver(t, dev, tier, 8, 4)
	below := sched.BelowCQ(r.cq).(*eventCQ)
	below.onWait = func(context.Context) error { return errStood }
	return r, below
}

// stepping has one request carried out at each of the next n waits for the queue below.
func stepping(r *rig, below *eventCQ, n int) {
	below.onWait = func(context.Context) error {
		if n--; n < 0 {
			return errStood
		}
		r.far.carryOut(1)
		return nil
	}
}

func (r *rig) arm(solicited bool) {
	r.t.Helper()
	must(r.t, r.cq.Arm(solicited))
}

func (r *rig) wait(what string, want error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	if err := r.cq.Wait(ctx); !errors.Is(err, want) || want == nil && err != nil {
		r.t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// A wait ends with what the user sees, not with slices and marks, once for each request for an event.
func TestAnEventIsForWhatTheUserSees(t *testing.T) {
	r, below := eventRig(t)
	r.arm(false)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	stepping(r, below, 7)
	r.wait("seven slices of eight", errStood)
	stepping(r, below, 9)
	r.wait("all of it", nil)
	tells(t, r.poll(), []uint64{1})
	r.wait("a second event of one request for it", errStood)
	r.arm(false)
	r.post(r.wr(2, rdma.OpWrite, 0, 8))
	r.far.carryOut(1)
	tells(t, r.poll(), []uint64{2})
	r.wait("a completion that a poll found first", nil)
}

// What was there before the request for an event raises none, and is not lost.
func TestWhatWasThereRaisesNoEvent(t *testing.T) {
	r, _ := eventRig(t)
	for id := range 3 {
		r.post(r.wr(id, rdma.OpWrite, 0, 8))
	}
	r.far.carryOut(3)
	r.arm(false)
	r.wait("what was there", errStood)
	tells(t, r.poll(), []uint64{0, 1, 2})
}

// Requests for solicited events go below; what that raises ends a wait, as failures do and nothing else.
func TestSolicitedEventsComeFromBelow(t *testing.T) {
	r, below := eventRig(t)
	r.arm(true)
	if !slices.Equal(below.armed, []bool{true}) {
		t.Errorf("armed below %v, want once, for solicited completions", below.armed)
	}
	below.onWait = func(context.Context) error { return nil }
	r.wait("an event below", nil)
	if !slices.Equal(below.armed, []bool{true}) {
		t.Errorf("armed below %v: the wait took the request away", below.armed)
	}
	r.arm(true)
	r.post(r.wr(1, rdma.OpWrite, 0, 8))
	r.far.carryOut(1)
	below.onWait = func(context.Context) error { return errStood }
	r.wait("a completion that is not solicited", errStood)
	must(t, r.qp.Fail())
	r.wait("before the failure is told", errStood)
	r.post(r.wr(2, rdma.OpWrite, 0, 8))
	r.wait("one that failed", nil)
	tells(t, r.poll(), []uint64{1, 2})
}

// The stronger of two requests for an event stands.
func TestAnyCompletionIsTheStrongerRequest(t *testing.T) {
	r, below := eventRig(t)
	r.arm(false)
	r.arm(true)
	r.post(r.wr(1, rdma.OpWrite, 0, 8))
	stepping(r, below, 1)
	r.wait("a completion", nil)
}

// Where only solicited completions raise events below, Wait looks in time for room for what waits.
func TestWaitLooksForRoomInTime(t *testing.T) {
	synctest.Test(t, waitLooksForRoomInTime)
}

func waitLooksForRoomInTime(t *testing.T) {
	r, below := eventRig(t)
	bounded := func(what string, want bool) {
		t.Helper()
		below.bounded = nil
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		below.onWait = func(context.Context) error {
			cancel()
			return context.Canceled
		}
		if err := r.cq.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
		if !slices.Equal(below.bounded, []bool{want}) {
			t.Errorf("%s: bounds of time %v, want %v", what, below.bounded, want)
		}
	}
	bounded("nothing armed", false)
	r.arm(true)
	bounded("solicited, and nothing waits", false)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	bounded("solicited, beside what waits", true)
	looks := 0
	below.onWait = func(ctx context.Context) error {
		r.far.carryOut(2)
		if looks++; looks > 20 {
			return errStood
		}
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := r.cq.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the time", err)
	}
	if ids, _ := told(r.poll()); !slices.Equal(ids, []uint64{1}) || looks < 4 {
		t.Errorf("completions %v in %d looks, want 1 in several", ids, looks)
	}
	r.arm(false)
	r.post(r.wr(2, rdma.OpWrite, 0, 8*kib))
	bounded("any completion, beside what waits", false)
}

// Errors below end a wait and a request for an event, and so does the caller's time.
func TestWaitEndsWithWhatFailed(t *testing.T) {
	r, below := eventRig(t)
	r.wait("the queue below fails", errStood)
	below.refused = rdma.ErrClosed
	r.wait("it refuses to be armed", rdma.ErrClosed)
	if err := r.cq.Arm(true); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("arm: %v, want %v", err, rdma.ErrClosed)
	}
	below.refused = nil
	below.bounded = nil
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.cq.Wait(over); !errors.Is(err, context.Canceled) || below.bounded != nil {
		t.Errorf("a wait without time: %v, %d waits below", err, len(below.bounded))
	}
}
