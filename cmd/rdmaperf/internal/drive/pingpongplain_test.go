package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A window of time ends with the round trip that ends with it, one of so many with the last.
func TestRoundTripsEndWithTheirWindow(t *testing.T) {
	for _, c := range []struct {
		lim  engine.Limits
		want int64
	}{{engine.Limits{Dur: 1000}, 4}, {engine.Limits{Dur: 1001}, 5}, {engine.Limits{Ops: 3}, 3},
		{engine.Limits{Ops: 3, Dur: 500}, 2}} {
		bubble(t, func(t *testing.T) {
			_, w, _ := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
			w.Lim = c.lim
			err := w.each(2, func(*pingPongWorker, *pingPongLane) (t0, t1 int64, err error) {
				t0 = engine.Now()
				time.Sleep(250)
				return t0, engine.Now(), nil
			})
			if l := w.Rec.Snapshot(); err != nil || w.Ops != c.want || w.End-w.Begin != 250*c.want || l.Mean != 125 ||
				l.Count != c.want {
				t.Errorf("%+v: %v, %d round trips in %d ns, %+v", c.lim, err, w.Ops, w.End-w.Begin, l)
			}
		})
	}
}

// One operation is timed from before it is posted until its answer is seen; what cannot be posted,
// polled, or fails, is no sample.
func TestOneOperationIsTimed(t *testing.T) {
	gone := errors.New("gone")
	failed := []transports.Done{{Kind: transports.KindRead, Status: rdma.StatusSuccess + 1}}
	for name, c := range map[string]struct {
		set  func(p *puppet)
		fine bool
		is   error
	}{
		"answered": {func(p *puppet) { p.onPoll = func(int) { time.Sleep(700); p.complete() } }, true, nil},
		"refused":  {func(p *puppet) { p.room, p.refuse = 0, errBroken }, false, errBroken},
		"lost":     {func(p *puppet) { p.lost = gone }, false, gone},
		"failed":   {func(p *puppet) { p.done = failed }, false, nil},
	} {
		bubble(t, func(t *testing.T) {
			p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion)
			c.set(p)
			w.inProvider = false
			t0, t1, err := alone.sample(w, l)
			if (err == nil) != c.fine || c.is != nil && !errors.Is(err, c.is) || c.fine && t1-t0 != 700 {
				t.Errorf("%s: %v, %d ns", name, err, t1-t0)
			}
		})
	}
	p, w, l := pingPongOn(t, "send", engine.SideClient, engine.ArrivalMessage)
	p.lost, l.out = gone, 1
	if err := w.untilComplete(l); !errors.Is(err, gone) {
		t.Errorf("an operation whose end nobody sees: %v", err)
	}
	if err := w.untilArrived(l); !errors.Is(err, gone) {
		t.Errorf("an answer that nobody sees: %v", err)
	}
	p.done = []transports.Done{{Kind: transports.KindSend}}
	if err := w.untilComplete(l); err != nil || l.out != 0 || p.polls != 3 {
		t.Errorf("an operation that ends: %v, %d out, %d polls", err, l.out, p.polls)
	}
	p.done = came(3, 1, 64)
	if err := w.untilArrived(l); err != nil || l.came != 1 || l.rounds[0].slot != 3 {
		t.Errorf("an answer that comes: %v, %d came", err, l.came)
	}
}

// Before the first phase each session gets its receives, where messages arrive in any; one that
// does not take them ends it.
func TestReceivesAreThereBeforeTheFirstPhase(t *testing.T) {
	for _, c := range []struct {
		op, arrival string
		want        int
	}{{"send", engine.ArrivalMessage, engine.LatencySlots}, {"write", engine.ArrivalNotify, engine.LatencySlots},
		{"write", engine.ArrivalMemory, 0}, {"read", engine.ArrivalCompletion, 0}} {
		a, w, first := pingPongOn(t, c.op, engine.SideServer, c.arrival)
		b, _, second := pingPongOn(t, c.op, engine.SideServer, c.arrival)
		w.lanes = append(w.lanes, second)
		p := &pingPong{c: &engine.Group{Sh: first.Sh, Role: engine.SideServer}, workers: []*pingPongWorker{w}}
		for range 2 {
			if err := p.Prepare(1); err != nil || len(a.posted) != c.want || len(b.posted) != c.want {
				t.Errorf("%s by %s: %v, %d and %d receives, want %d once", c.op, c.arrival, err, len(a.posted),
					len(b.posted), c.want)
			}
		}
		a.room, a.refuse, p.begun = 5, errBroken, false
		if err := p.Prepare(1); errors.Is(err, errBroken) != (c.want > 0) {
			t.Errorf("%s by %s refused: %v", c.op, c.arrival, err)
		}
	}
}
