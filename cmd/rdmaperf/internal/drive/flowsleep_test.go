package drive

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// sleeping runs something in a bubble, in which sleeps of the kernel's are the bubble's, and gives them.
func sleeping(t *testing.T, run func()) (sleeps []int64) {
	t.Helper()
	defer func(f func(int64)) { Sleep = f }(Sleep)
	bubble(t, func(t *testing.T) {
		time.Sleep(1000) // no window begins at 0
		Sleep = func(ns int64) {
			sleeps = append(sleeps, ns)
			time.Sleep(time.Duration(ns))
		}
		run()
	})
	return sleeps
}

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A stream sleeps where its queue is full and nothing came, and no more once its last operation is posted.
func TestAStreamSleepsBesideAFullQueue(t *testing.T) {
	for sleep, want := range map[int64][]int64{leastSleep: {leastSleep}, leastSleep - 1: nil} {
		got := sleeping(t, func() {
			p, _, w, l := streamOn("read", nil)
			l.Out, l.sleep, w.Lim.Ops = 8, sleep, 1
			p.onPoll = func(n int) {
				if n == 2 {
					p.done = []transports.Done{{Kind: transports.KindRead, Slot: 8}}
				} else if n > 2 {
					p.complete()
				}
			}
			if err := w.run(); err != nil || l.Posted != 1 {
				t.Errorf("%v, %d posted", err, l.Posted)
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("sleeps of %v, want %v", got, want)
		}
	}
}

// How long it may sleep follows from what is outstanding, and how long one takes.
func TestHowLongAStreamMaySleep(t *testing.T) {
	_, _, w, l := streamOn("send", func(sh *engine.Shape) {
		sh.Depth, sh.Moderation, sh.RecvDepth, sh.Slots = 16, 4, 16, 16
	})
	w.Sleeps, w.Begin, l.flowing, l.Posted, l.Out = true, 1000, true, 16, 12
	for range 2 {
		if w.progress(l, 1000+400_000); l.counted != 4 || l.sleep != 100_000*8/64 {
			t.Errorf("%d complete, %d ns; want an eighth of 100 us", l.counted, l.sleep)
		}
		w.Begin = 0
	}
	if l.stop(false); l.sleep != 0 {
		t.Errorf("%d ns behind the end", l.sleep)
	}
}

// A window of time ends where credits are all that is missing, too.
func TestAStreamWithoutCreditsEndsWithItsWindow(t *testing.T) {
	sleeping(t, func() {
		p, f, w, l := streamOn("send", func(sh *engine.Shape) { sh.RecvDepth = 8 })
		prepare(t, p, f)
		p.onPoll = func(n int) {
			time.Sleep(100)
			switch n {
			case 1, 2:
				p.done = []transports.Done{{Kind: transports.KindSend, Slot: 4}}
			case 3:
				arrives(p, 1)
				arrives(p, 1)
			default:
				arrives(p, numberSize)
				p.done = append(p.done, transports.Done{Kind: transports.KindSend, Slot: 1})
			}
		}
		w.Lim.Dur = 200
		if err := f.Loop(w.Worker)(); err != nil || l.Posted != 8 || w.End-w.Begin != 400 {
			t.Errorf("%v, %d posted in %d ns, want 8 and the fin", err, l.Posted, w.End-w.Begin)
		}
	})
}

// A target that may sleep does so while nothing comes, for a part of what it has receives for.
func TestATargetSleepsWhileNothingComes(t *testing.T) {
	for _, c := range []struct {
		took int64 // of 64 messages
		want []int64
	}{{64 * 100_000, []int64{400_000, 400_000, 262_500}}, {64 * leastSleep / 4,
		[]int64{leastSleep, leastSleep, 100_000}}, {64 * (leastSleep/4 - 1), nil}} {
		got := sleeping(t, func() {
			_, w, l := pulled(&engine.Shape{Point: engine.Point{Op: "send", Size: 64}, RecvDepth: 512, Slots: 4,
				Moderation: 1}, engine.SideServer)
			turn := 0
			w.Sleeps = true
			err := Turns(w, w.Lanes, func(*engine.Lane) error {
				switch turn++; turn {
				case 1, 4:
					w.Ops += 64
					time.Sleep(time.Duration(c.took))
				case 6:
					w.Stop.Store(engine.StopSoon)
				}
				return nil
			})
			if err != nil || l == nil || w.End == 0 {
				t.Errorf("%v, ended at %d", err, w.End)
			}
		})
		if len(got) > 3 {
			got = got[:3]
		}
		if len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || got[1] != c.want[1]) {
			t.Errorf("64 messages in %d ns: sleeps of %v, want %v", c.took, got, c.want)
		}
	}
}
