package bench

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
)

// callWorker is one goroutine that calls. It is not locked to a thread: gRPC's own
// goroutines have to run beside it as in any program.
type callWorker struct {
	k           *callCrew
	c           caller
	t           *tally
	index, slot int // of the point, of its connection
	pace        *Pacer
	shift       int64
	raw         *rawBuffer // of the phase, its own without a lock; nil: samples are not kept
}

// maxTallies bounds the histograms of a phase, 220 KB each. Beyond so many goroutines
// some share one; they hold its lock for some 20 ns a call.
const maxTallies = 64

// tally counts what its goroutines did.
type tally struct {
	mu           sync.Mutex
	rec, service *reports.Recorder // nil: not timed, and closed loop
	series       *series
	ops, bytes   int64
	late, unsent int64
	end          int64
}

// reset makes a tally ready for a phase.
func (t *tally) reset(timed, open bool, every, window time.Duration) {
	again := func(r *reports.Recorder, want bool) *reports.Recorder {
		switch {
		case !want:
			return nil
		case r == nil:
			return reports.NewRecorder()
		}
		r.Reset()
		return r
	}
	t.rec, t.service = again(t.rec, timed), again(t.service, timed && open)
	t.series = nil
	if every > 0 && window > 0 {
		t.series = newSeries(every, window)
	}
	t.ops, t.bytes, t.late, t.unsent, t.end = 0, 0, 0, 0, 0
}

func (t *tally) add(end, ns, service, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops++
	t.bytes += bytes
	t.end = max(t.end, end)
	if t.rec != nil {
		t.rec.Record(ns)
	}
	if t.service != nil {
		t.service.Record(service)
	}
	if t.series != nil {
		t.series.sample(end, ns)
	}
}

// callRun is a phase in progress on the client.
type callRun struct {
	run
	ctx     context.Context // of the calls
	lim     limits
	begin   int64
	stalled atomic.Bool

	mu  sync.Mutex
	err error // the first failure; a corruption wins
}

func (r *callRun) fail(err error) {
	r.mu.Lock()
	if r.err == nil || reports.Code(err) == reports.ExitCorruption {
		r.err = err
	}
	r.mu.Unlock()
	r.halt(stopNow) // others may wait for a server that has given up
}

// start lets the callers go, all at once.
func (k *callCrew) start(gen int, lim limits) *run {
	sh := k.m.sh
	for _, t := range k.tallies {
		t.reset(k.timed(), sh.Rate > 0, k.interval, lim.dur)
	}
	k.keep()
	r := &callRun{run: run{done: make(chan struct{})}, lim: lim}
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	r.cancel = func() {
		if r.stop.Load() == stopNow { // stopSoon lets calls under way end
			cancel()
		}
	}
	var ready, ended sync.WaitGroup
	gate := make(chan struct{})
	for _, w := range k.workers {
		ready.Add(1)
		ended.Go(func() {
			err := w.c.begin(ctx, gen)
			ready.Done()
			<-gate
			if err == nil {
				err = w.loop(r)
			}
			switch {
			case err == nil, err == errStop:
			case r.stalled.Load():
				r.fail(peerError(sh.Point.String(), errStalled, "the server's log, or a longer --timeout"))
			case r.stop.Load() == stopNow && reports.Code(err) != reports.ExitCorruption: // told to
			default:
				r.fail(w.failed(err))
			}
		})
	}
	over := make(chan struct{})
	var before usage
	go func() {
		defer close(over)
		ready.Wait() // what a caller begins with is outside the window
		before = readUsage()
		r.begin = now()
		for _, t := range k.tallies {
			if t.series != nil {
				t.series.start(r.begin)
			}
		}
		close(gate)
		ended.Wait()
	}()
	go func() {
		k.guard(r, over)
		cancel()
		r.out = k.collect(r)
		r.out.usage = readUsage().minus(before)
		close(r.done)
	}()
	return &r.run
}

// guard waits for the callers, and ends them when nothing was answered for the
// timeout.
func (k *callCrew) guard(r *callRun, over <-chan struct{}) {
	timeout := k.m.sh.Timeout
	if rate := k.m.sh.Rate; rate > 0 { // between two calls nothing is answered either
		timeout += time.Duration(float64(len(k.workers)) * 1e9 / rate)
	}
	tick := time.NewTicker(timeout / 4)
	defer tick.Stop()
	last, since := int64(-1), now()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		var ops int64
		for _, t := range k.tallies {
			t.mu.Lock()
			ops += t.ops
			t.mu.Unlock()
		}
		if t := now(); ops != last {
			last, since = ops, t
		} else if t-since > int64(timeout) {
			r.stalled.Store(true)
			r.halt(stopNow)
		}
	}
}

func (k *callCrew) collect(r *callRun) outcome {
	o := outcome{begin: r.begin, err: r.err}
	end := r.begin
	for _, t := range k.tallies {
		o.ops += t.ops
		o.bytes += t.bytes
		o.late += t.late
		o.unsent += t.unsent
		end = max(end, t.end)
		if t.rec != nil {
			if o.rec == nil {
				o.rec = reports.NewRecorder()
			}
			o.rec.Merge(t.rec)
		}
		if t.service != nil {
			if o.service == nil {
				o.service = reports.NewRecorder()
			}
			o.service.Merge(t.service)
		}
		if t.series != nil {
			if o.series == nil {
				o.series = t.series
			} else {
				o.series.merge(t.series)
			}
		}
	}
	o.window = time.Duration(end - r.begin)
	return o
}

// loop makes calls until a limit. A window by duration ends at its deadline even
// when nothing is due, so that the achieved rate is one.
func (w *callWorker) loop(r *callRun) (err error) {
	share, deadline := int64(math.MaxInt64), int64(math.MaxInt64)
	if r.lim.ops > 0 {
		depth := int64(w.k.m.sh.Depth) // the limit is a connection's
		share = r.lim.ops / depth
		if int64(w.slot) < r.lim.ops%depth {
			share++
		}
	}
	if r.lim.dur > 0 {
		deadline = r.begin + int64(r.lim.dur)
	}
	if w.pace != nil {
		w.pace.Start(r.begin + w.shift)
	}
	for n := int64(0); n < share && r.stop.Load() == 0; n++ {
		var due int64
		if w.pace != nil {
			due = w.pace.Due()
			switch t := w.awaitStart(r, min(due, deadline)); {
			case r.stop.Load() != 0:
				return w.finish(errStop)
			case t >= deadline:
				w.note(func(t *tally) { t.unsent += w.pace.Missed(deadline); t.end = max(t.end, deadline) })
				return w.finish(nil)
			}
			w.pace.Next()
		}
		w.c.prepare(n)
		t0 := now()
		if err := w.c.call(); err != nil {
			return err
		}
		t1 := now()
		bytes, err := w.c.check(t1 - t0)
		if err != nil {
			return err
		}
		ns := t1 - t0
		if w.pace != nil {
			ns = t1 - due
		}
		w.t.add(t1, ns, t1-t0, bytes)
		if w.raw != nil {
			w.raw.take(t1, ns, t1-t0)
		}
		switch {
		case r.stop.Load() != 0:
			return w.finish(errStop)
		case t1 >= deadline && w.pace == nil:
			return w.finish(nil)
		}
	}
	return w.finish(nil)
}

// finish ends the phase of this caller; what it waits for is inside the window.
func (w *callWorker) finish(how error) error {
	if err := w.c.end(); err != nil {
		return err
	}
	if !w.k.timed() { // the end proves what was sent
		t := now()
		w.note(func(y *tally) { y.end = max(y.end, t) })
	}
	return how
}

func (w *callWorker) note(f func(*tally)) {
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	f(w.t)
}

const (
	// sleepSlack is how much too late a sleep of the kernel's may end; the rest is
	// waited for awake, where few callers do so.
	sleepSlack = 100_000 // ns
	// fewCallers are as many as may wait awake. Arbitrary.
	fewCallers = 8
	// napMost bounds one sleep, so that an interrupt is noticed.
	napMost = 50_000_000 // ns
)

// awaitStart waits until t and returns the time. The kernel's sleep is used because
// the runtime's timers may be a millisecond late. With many callers the last of it is
// slept, too, and its lateness is part of the latency, not of the service time.
func (w *callWorker) awaitStart(r *callRun, t int64) int64 {
	slack := int64(0)
	if len(w.k.workers) <= fewCallers {
		slack = sleepSlack
	}
	at := now()
	if at >= t {
		w.note(func(y *tally) { y.late++ })
		return at
	}
	for at < t && r.stop.Load() == 0 {
		if left := t - at - slack; left > 0 {
			nap := unix.NsecToTimespec(min(left, napMost))
			unix.Nanosleep(&nap, nil) // an interrupted one is gone on with
		} else {
			runtime.Gosched()
		}
		at = now()
	}
	return at
}
