package drive

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// napping runs something in a bubble, in which sleeps of the kernel's are the bubble's, and gives
// them.
func napping(t *testing.T, run func()) (naps []int64) {
	t.Helper()
	defer func(f func(int64)) { Nap = f }(Nap)
	synctest.Test(t, func(t *testing.T) {
		engine.RestartClock()
		time.Sleep(1000) // no window begins at 0
		Nap = func(ns int64) {
			naps = append(naps, ns)
			time.Sleep(time.Duration(ns))
		}
		run()
	})
	engine.RestartClock()
	return naps
}

// A stream that may sleep does so where its queue is full and nothing came, if that is worth it.
func TestAStreamSleepsBesideAFullQueue(t *testing.T) {
	for sleep, want := range map[int64][]int64{leastSleep: {leastSleep}, leastSleep - 1: nil} {
		got := napping(t, func() {
			p, _, w, l := streamOn("write", nil)
			l.Out, l.sleep, w.Lim.Ops = 8, sleep, 2
			p.onPoll = func(n int) {
				if n == 2 {
					p.done = []transports.Done{{Kind: transports.KindWrite, Slot: 8}}
				}
			}
			if err := w.flow(); err != nil || l.Posted != 1 {
				t.Errorf("%v, %d posted", err, l.Posted)
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("sleeps of %v, want %v", got, want)
		}
	}
	// One that has something to do lets the others of its thread not sleep either.
	got := napping(t, func() {
		p, _, w, l := streamOn("write", nil)
		idle, _, _, other := streamOn("write", nil)
		other.Out, other.sleep, l.sleep, w.Lim.Ops = 8, leastSleep, leastSleep, 20 // three turns
		w.lanes = append(w.lanes, other)
		l.answering(p)
		idle.onPoll = func(n int) {
			if n == 6 {
				w.Stop.Store(engine.StopSoon)
				idle.done = []transports.Done{{Kind: transports.KindWrite, Slot: 8}}
			}
		}
		w.flow()
	})
	if len(got) != 2 {
		t.Errorf("%d sleeps, want one in each of the two turns that moved nothing", len(got))
	}
}

// How long it may sleep follows from what is outstanding besides the next completion, and how long
// one takes; what brings no completion changes nothing.
func TestHowLongAStreamMaySleep(t *testing.T) {
	napping(t, func() {
		p, _, w, l := streamOn("send", func(sh *engine.Shape) { sh.Depth, sh.Moderation, sh.RecvDepth, sh.Slots = 16, 4, 16, 16 })
		p.onPoll = func(n int) {
			time.Sleep(400_000)
			if n == 1 {
				p.done = []transports.Done{{Kind: transports.KindSend, Slot: 4}}
			} else {
				l.said(p, 1)
			}
		}
		w.Sleeps, w.Lim.Dur = true, 800*time.Microsecond
		w.Open()
		if err := w.flow(); err != nil || l.counted != 4 || l.sleep != 100_000*8/64 || p.polls != 2 {
			t.Errorf("%v, %d complete, %d ns, %d polls; want an eighth of 100 us", err, l.counted, l.sleep, p.polls)
		}
	})
}

// A window of time ends where credits are all that is missing, too.
func TestAStreamWithoutCreditsEndsWithItsWindow(t *testing.T) {
	napping(t, func() {
		p, s, w, l := streamOn("send", func(sh *engine.Shape) { sh.RecvDepth = 8 })
		if err := s.Prepare(engine.GenMeasure); err != nil {
			t.Fatal(err)
		}
		p.complete()
		p.onPoll = func(n int) {
			time.Sleep(100)
			switch n {
			case 1, 2:
				p.done = []transports.Done{{Kind: transports.KindSend, Slot: 4}}
			case 3:
				l.said(p, 8)
			default:
				l.said(p, l.Messages)
				p.done = append(p.done, transports.Done{Kind: transports.KindSend, Slot: 1})
			}
		}
		w.Lim.Dur = 200
		if err := s.Loop(w.Worker)(); err != nil || l.Posted != 9 || w.End-w.Begin != 500 {
			t.Errorf("%v, %d posted in %d ns, want 8 and the tail", err, l.Posted, w.End-w.Begin)
		}
	})
}
