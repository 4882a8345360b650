package drive

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Steps are taken in the provider where both ends agreed on that, and it can; not by who sleeps.
func TestWhoTakesStepsInTheProvider(t *testing.T) {
	for _, c := range []struct {
		loop         string
		caps, events bool
		want         bool
	}{{engine.LoopProvider, true, false, true}, {engine.LoopPlain, true, false, false},
		{engine.LoopProvider, false, false, false}, {engine.LoopProvider, true, true, false}} {
		sh := &engine.Shape{Point: engine.Point{Op: "send", Size: 64}, Loop: c.loop}
		side, err := NewPingPong(&engine.Group{Sh: sh, Role: engine.SideServer, Caps: transports.Caps{PingPong: c.caps},
			Workers: []*engine.Worker{{Sh: sh, Event: c.events}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := side.(*pingPong).workers[0].inProvider; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A client takes many steps in one call where it has one session, nothing paces it, and messages are small.
func TestHowManyStepsOneCallTakes(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, two  bool
		rate     float64
		size     int
		calls    bool
		together bool
	}{
		{"one session", true, false, 0, 64, true, true}, {"two sessions", true, true, 0, 64, true, false},
		{"paced", true, false, 1e9, 64, true, false}, {"large", true, false, 0, engine.MediumMessage + 1, true, false},
		{"plain", false, false, 0, 64, false, false},
	} {
		p, w, l := pingPongOn(t, "read", engine.SideClient, engine.ArrivalCompletion, c.size)
		l.Sh.Rate = c.rate
		if w.inProvider = c.in; c.two {
			w.lanes = append(w.lanes, l)
		}
		pp := &pingPong{c: &engine.Group{Sh: l.Sh, Role: engine.SideClient}, workers: []*pingPongWorker{w}}
		Paced(w.Worker, l.Sh, 0, 1)
		most := 0
		p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
			most = max(most, len(vs))
			met(vs, 0, 0)
			w.Stop.Store(engine.StopSoon)
			return 0, nil
		}
		p.onPoll = func(int) { w.Stop.Store(engine.StopSoon) }
		w.Lim.Ops = 100
		if w.Pace != nil {
			w.Service = w.Rec
		}
		if err := pp.Loop(w.Worker)(); err != nil && err != engine.ErrStop || (p.calls > 0) != c.calls ||
			(most > 1) != c.together {
			t.Errorf("%s: %v, %d calls of %d steps at most", c.name, err, p.calls, most)
		}
	}
}

// A large message is taken by itself in the provider, too: where its receive cannot be posted again it is no sample.
func TestALargeMessageIsTakenAlone(t *testing.T) {
	p, w, l := pingPongOn(t, "send", engine.SideClient, engine.ArrivalMessage, engine.MediumMessage+1)
	p.steps = func(_ int, vs []transports.PingPongStep) (int, error) {
		met(vs, 1, 100)
		return copy(w.Done, append(came(1, 1, uint32(l.Sh.Size)), transports.Done{Kind: transports.KindSend})), nil
	}
	p.room, p.refuse, w.Lim.Ops = 0, errBroken, 3
	pp := &pingPong{c: &engine.Group{Sh: l.Sh, Role: engine.SideClient}, workers: []*pingPongWorker{w}}
	if err := pp.Loop(w.Worker)(); !errors.Is(err, errBroken) || p.calls != 1 || w.Ops != 0 || w.Rec.Count() != 0 {
		t.Errorf("%v, %d calls, %d round trips, %d samples, want none", err, p.calls, w.Ops, w.Rec.Count())
	}
}

// Small messages take as many slots as two batches, larger ones fewer; so many sources fit.
func TestSlotsOfAPingPong(t *testing.T) {
	const medium, large = engine.MediumMessage, engine.LargeMessage
	for _, c := range []struct{ size, slots, steps, shift int }{
		{64, 32, 16, 64}, {65, 32, 16, 128}, {medium, 32, 16, medium}, {medium + 1, 4, 1, engine.ShiftStep},
		{large, 4, 1, engine.ShiftStep}, {large + 1, 2, 1, engine.ShiftStep},
	} {
		sh := &engine.Shape{Point: engine.Point{Op: "send", Size: c.size}, Slots: c.slots}
		sh.Layout = PingPongLayout(sh)
		if LatencySlotsFor(c.size) != c.slots || BatchSteps(sh) != c.steps || Shift(sh) != c.shift ||
			sh.RxOff() != sh.Stride()+(engine.LatencyShifts-1)*c.shift {
			t.Errorf("%d bytes: %d slots, %d steps, sources %d apart, destinations from %d; want %+v", c.size,
				LatencySlotsFor(c.size), BatchSteps(sh), Shift(sh), sh.RxOff(), c)
		}
	}
}

// A message begins with its number where it has more than 8 bytes, and ends with its mark.
func TestMessagesOfAPingPongAreMarked(t *testing.T) {
	for _, size := range []int{1, 7, 8, 9, 64} {
		_, _, l := pingPongOn(t, "send", engine.SideClient, engine.ArrivalMessage, size)
		for i := range l.ref.Bytes() {
			l.ref.Bytes()[i], l.Mem[i] = 0xee, 0xee
		}
		l.iter = 0x0102030405060708
		off := l.stamp()
		want := bytes.Repeat([]byte{0xee}, 2*size)
		if size > 8 {
			copy(want, []byte{9, 7, 6, 5, 4, 3, 2, 1})
		}
		want[size-1] = stampOf(l.iter)
		if off != l.source(l.iter) || !bytes.Equal(l.Mem[off:][:2*size], want) ||
			!bytes.Equal(l.ref.Bytes()[off:][:2*size], want) {
			t.Errorf("%d bytes: % x and % x at %d, want % x", size, l.Mem[off:][:2*size], l.ref.Bytes()[off:][:2*size],
				off, want)
		}
	}
}

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

// One operation is timed from its post until its answer is seen; what fails is no sample.
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

// Before the first phase each session gets its receives, where messages arrive in any.
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
