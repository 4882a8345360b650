package drive

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// timed is a caller whose calls take so long each, by the clock of a bubble.
type timed struct {
	takes    []int64 // the last one again and again
	begun    []int64 // when each call began
	prepared []int64
	onCall   func(n int) // nil: nothing
	run      *callRun
	ends     int64 // how long the end takes
	failed   error // of the end
}

func (c *timed) Begin(context.Context, int) error { return nil }
func (c *timed) Prepare(n int64)                  { c.prepared = append(c.prepared, n) }
func (c *timed) Call() error {
	c.begun = append(c.begun, engine.Now())
	n := len(c.begun)
	time.Sleep(time.Duration(c.takes[min(n, len(c.takes))-1]))
	if c.onCall != nil {
		c.onCall(n)
	}
	return nil
}
func (c *timed) Check(int64) (int64, error) { return 10, nil }
func (c *timed) End() error {
	time.Sleep(time.Duration(c.ends))
	return c.failed
}

// calling runs one caller of a group in a bubble. others are how many there are beside it.
func calling(t *testing.T, group CallGroup, c *timed, others, slot int, lim engine.Limits,
	check func(w *callWorker, r *callRun, err error)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		defer func(f func(int64)) { Sleep = f }(Sleep)
		Sleep = func(ns int64) { time.Sleep(time.Duration(ns)) }
		m, k := point()
		k.Measurement = m
		g := newCallGroup(group)
		k.lead = g
		w := &callWorker{k: k, c: c, t: g.tallies[0], g: g, slot: slot}
		g.workers = append(make([]*callWorker, others), w)
		if g.open() {
			w.pace, w.shift = engine.NewPacer(1e9/group.Rate, false, 1), 0
		}
		c.run = &callRun{lim: lim, begin: engine.Now()}
		c.run.Cancel = func() {}
		err := w.loop(c.run)
		check(w, c.run, err)
	})
}

// many is more callers than may wait awake, which takes no time in a bubble.
const many = fewCallers

// Of so many calls on a connection each of its callers makes its part, one after the other.
func TestCallersShareTheCallsOfAConnection(t *testing.T) {
	for slot, want := range []int64{3, 2, 2} {
		c := &timed{takes: []int64{300, 500}}
		calling(t, CallGroup{Conns: 1, Each: 3}, c, many, slot, engine.Limits{Ops: 7},
			func(w *callWorker, r *callRun, err error) {
				if err != nil || w.ops != want || w.t.ops != want || w.t.bytes != 10*want ||
					w.end != 300+500*(want-1) || w.t.end != w.end {
					t.Errorf("place %d: %v, %d calls, %d bytes until %d, want %d until %d", slot, err, w.ops, w.t.bytes,
						w.end, want, 300+500*(want-1))
				}
				if w.t.rec.Count() != want || w.t.rec.Snapshot().Max != 500 || w.t.rec.Snapshot().Min != 300 {
					t.Errorf("place %d: latencies %+v", slot, w.t.rec.Snapshot())
				}
				for i, n := range c.prepared {
					if n != int64(i) {
						t.Errorf("call %d is prepared as %d", i, n)
					}
				}
			})
	}
}

// A window of time has the calls that began in it, and ends with the last of them.
func TestAWindowOfCallsEndsWithTheLast(t *testing.T) {
	for _, c := range []struct{ takes, calls, end int64 }{{300, 4, 1200}, {250, 4, 1000}, {5000, 1, 5000}} {
		calling(t, CallGroup{Conns: 1, Each: 1}, &timed{takes: []int64{c.takes}}, many, 0, engine.Limits{Dur: 1000},
			func(w *callWorker, r *callRun, err error) {
				if err != nil || w.ops != c.calls || w.end != c.end {
					t.Errorf("calls of %d: %v, %d of them until %d, want %d until %d", c.takes, err, w.ops, w.end,
						c.calls, c.end)
				}
			})
	}
}

// From the start of one call to that of the next lies the gap at least; none begins at the end of the window.
func TestCallsKeepTheirGap(t *testing.T) {
	c := &timed{takes: []int64{300, 1700, 200}}
	calling(t, CallGroup{Conns: 1, Each: 1, Gap: 1000}, c, many, 0, engine.Limits{Dur: 3700},
		func(w *callWorker, r *callRun, err error) {
			if want := []int64{0, 1000, 2700}; err != nil || !slices.Equal(c.begun, want) {
				t.Errorf("%v, calls at %v, want %v", err, c.begun, want)
			}
		})
}

// Of a rate, latencies begin when a call was due, service times when it began; the window ends at its deadline.
func TestCallsOfARateBeginWhenDue(t *testing.T) {
	c := &timed{takes: []int64{2500, 100}}
	calling(t, CallGroup{Conns: 1, Each: 1, Rate: 1e6}, c, many, 0, engine.Limits{Dur: 5000},
		func(w *callWorker, r *callRun, err error) {
			if want := []int64{0, 2500, 2600, 3000, 4000}; err != nil || !slices.Equal(c.begun, want) {
				t.Errorf("%v, calls at %v, want %v", err, c.begun, want)
			}
			l, s := w.t.rec.Snapshot(), w.t.service.Snapshot()
			if l.Max != 2500 || l.Min != 100 || l.Mean != (2500+1600+700+100+100)/5. || s.Mean != (2500+4*100)/5. {
				t.Errorf("latencies of %v to %v, mean %v, service %v", l.Min, l.Max, l.Mean, s.Mean)
			}
			if w.t.late != 3 || w.t.end != 5000 || w.ops != 5 || w.end != 4100 || w.t.unsent != 0 {
				t.Errorf("%d late, %d unsent, %d calls until %d, the window until %d", w.t.late, w.t.unsent, w.ops,
					w.end, w.t.end)
			}
		})
	c = &timed{takes: []int64{4200}}
	calling(t, CallGroup{Conns: 1, Each: 1, Rate: 1e6}, c, many, 0, engine.Limits{Dur: 4000},
		func(w *callWorker, r *callRun, err error) {
			if l := w.t.rec.Snapshot(); err != nil || w.t.unsent != 3 || w.ops != 1 || w.t.late != 1 || l.Count != 4 ||
				l.Unfinished != 3 {
				t.Errorf("%v, %d calls, %d late, %d unsent, %d samples of which %d are bounds; want 1, 1 and 3", err,
					w.ops, w.t.late, w.t.unsent, l.Count, l.Unfinished)
			}
		})
}

// Few callers wait for the end of a pause awake, for as long as a sleep may end too late.
func TestFewCallersWaitAwake(t *testing.T) {
	for others, slack := range map[int]int64{fewCallers - 1: sleepSlack, fewCallers: 0} {
		c := &timed{takes: []int64{100}}
		var sleeps []int64
		calling(t, CallGroup{Conns: 1, Each: 1}, c, others, 0, engine.Limits{Ops: 1},
			func(w *callWorker, r *callRun, err error) {
				Sleep = func(ns int64) {
					sleeps = append(sleeps, ns)
					time.Sleep(time.Duration(ns + slack)) // as late as it may be
				}
				w.awaitStart(r, engine.Now()+10*sleepSlack)
			})
		if want := 10*sleepSlack - slack; !slices.Equal(sleeps, []int64{want}) {
			t.Errorf("with %d others, sleeps of %v, want one of %d", others, sleeps, want)
		}
	}
	var sleeps []int64 // one that ends as it should leaves the slack to be awake, and no sleep of nothing
	calling(t, CallGroup{Conns: 1, Each: 1}, &timed{takes: []int64{100}}, 0, 0, engine.Limits{Ops: 1},
		func(w *callWorker, r *callRun, err error) {
			Sleep = func(ns int64) {
				sleeps = append(sleeps, ns)
				time.Sleep(time.Duration(ns))
				go func() { // whoever is awake pauses in a bubble
					for range 100 {
						runtime.Gosched()
					}
					r.Halt(engine.StopSoon)
				}()
			}
			w.awaitStart(r, engine.Now()+10*sleepSlack)
		})
	if !slices.Equal(sleeps, []int64{9 * sleepSlack}) {
		t.Errorf("sleeps of %v, want one of %d", sleeps, 9*sleepSlack)
	}
}

// A call under way is ended with before a stop is heeded, and an end that failed is reported.
func TestStoppedCallersEndTheirCall(t *testing.T) {
	for _, lim := range []engine.Limits{{Ops: 9}, {Ops: 2}, {Dur: 400}} {
		c := &timed{takes: []int64{200}}
		c.onCall = func(n int) {
			if n == 2 {
				c.run.Halt(engine.StopSoon)
			}
		}
		calling(t, CallGroup{Conns: 1, Each: 1}, c, many, 0, lim, func(w *callWorker, r *callRun, err error) {
			if !errors.Is(err, engine.ErrStop) || w.ops != 2 || w.end != 400 {
				t.Errorf("%+v: %v, %d calls until %d, want 2 until 400", lim, err, w.ops, w.end)
			}
		})
	}
	broken := errors.New("broken")
	calling(t, CallGroup{Conns: 1, Each: 1}, &timed{takes: []int64{100}, failed: broken}, many, 0,
		engine.Limits{Ops: 1}, func(w *callWorker, r *callRun, err error) {
			if !errors.Is(err, broken) {
				t.Errorf("%v, want %v", err, broken)
			}
		})
	calling(t, CallGroup{Conns: 1, Each: 1, Untimed: true}, &timed{takes: []int64{100}, ends: 700}, many, 0,
		engine.Limits{Ops: 3}, func(w *callWorker, r *callRun, err error) {
			if err != nil || w.t.end != 1000 {
				t.Errorf("%v, the window ends at %d, want with what the end waited for, 1000", err, w.t.end)
			}
		})
}

// Callers of which nobody had an answer for the timeout are ended, and no sooner between two calls.
func TestCallersThatStallAreEnded(t *testing.T) {
	for name, c := range map[string]struct {
		group CallGroup
		after time.Duration // nothing was answered
	}{
		"one after the other": {CallGroup{Conns: 3, Each: 2}, time.Second},
		"with a gap":          {CallGroup{Conns: 3, Each: 2, Gap: 2 * time.Second}, 3 * time.Second},
		"of a rate":           {CallGroup{Conns: 3, Each: 2, Rate: 2}, 4 * time.Second}, // six callers, each every 3 s
	} {
		guarding(t, c.group, 0, func(k *Calls, r *callRun) {
			for range 5 { // an answer in time, again and again
				time.Sleep(c.after - time.Millisecond)
				k.lead.tallies[0].add(engine.Now(), 1, 1, 1)
			}
			if r.stalled.Load() {
				t.Errorf("%s: ended although calls are answered", name)
			}
			time.Sleep(c.after)
			if r.stalled.Load() {
				t.Errorf("%s: ended after less than %v", name, c.after)
			}
			if time.Sleep(c.after); !r.stalled.Load() || r.Stop.Load() != engine.StopNow {
				t.Errorf("%s: not ended twice %v after the last answer", name, c.after)
			}
		})
	}
}

// guarding has the callers of a group guarded, with a timeout of a second, of whose calls so many were answered.
func guarding(t *testing.T, group CallGroup, answered int64, check func(k *Calls, r *callRun)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		m, k := point()
		m.Sh.Timeout = time.Second
		k.lead = newCallGroup(group)
		k.lead.workers, k.lead.tallies[0].ops = make([]*callWorker, group.Conns*group.Each), answered
		r, over, ended := &callRun{}, make(chan struct{}), make(chan struct{})
		r.Cancel = func() {}
		go func() {
			defer close(ended)
			k.guard(r, over)
		}()
		check(k, r)
		close(over)
		<-ended
	})
}
