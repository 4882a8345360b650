package drive

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// callWorker is one goroutine that calls, not locked to a thread, as goroutines of the transport run beside it.
type callWorker struct {
	k           *Calls
	c           engine.Caller
	t           *tally
	g           *callGroup
	index, slot int // of the group, of its connection
	conn        int
	pace        *engine.Pacer
	shift       int64
	ops, end    int64             // of the phase
	raw         *engine.RawBuffer // of the phase, its own without a lock; nil: samples are not kept
}

// MaxTallies bounds the histograms of a phase, 220 KB each. More goroutines share them, under a lock of some 20 ns a
// call.
const MaxTallies = 64

type tally struct {
	mu           sync.Mutex
	rec, service *reports.Recorder // nil: not timed, and closed loop
	series       *engine.Series
	ops, bytes   int64
	late, unsent int64
	end          int64
}

func (t *tally) reset(timed, open bool, every, window time.Duration) {
	again := func(r *reports.Recorder, want bool) *reports.Recorder {
		if !want {
			return nil
		}
		return engine.Fresh(r)
	}
	t.rec, t.service, t.series = again(t.rec, timed), again(t.service, timed && open), nil
	if every > 0 && window > 0 {
		t.series = engine.NewSeries(every, window)
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
		t.series.Sample(end, ns)
	}
}

// overdue counts what was due before the end and not called, with the time that it waited.
func (t *tally) overdue(pace *engine.Pacer, end int64) {
	t.unsent += pace.Overdue(end, func(waited, n int64) {
		if t.rec != nil {
			t.rec.AtLeast(waited, n)
		}
	})
}

type callRun struct {
	engine.Phase
	ctx     context.Context // of the calls
	lim     engine.Limits
	begin   int64
	stalled atomic.Bool
	over    atomic.Bool // the lead has ended, so that those beside it end, too

	mu  sync.Mutex
	err error // the first failure; a corruption wins
}

func (r *callRun) fail(err error) {
	r.mu.Lock()
	if r.err == nil || reports.Code(err) == reports.ExitCorruption {
		r.err = err
	}
	r.mu.Unlock()
	r.Halt(engine.StopNow) // others may wait for a server that has given up
}

func (k *Calls) start(gen int, lim engine.Limits) *engine.Phase {
	sh := k.Sh
	var parts []*engine.Series
	for _, t := range k.lead.tallies {
		t.reset(!k.lead.Untimed, k.lead.open(), k.interval, lim.Dur)
		if t.series == nil && k.live != nil && lim.Dur > 0 {
			t.series = k.live.Ring()
		}
		parts = append(parts, t.series)
	}
	working := k.lead.workers
	if k.beside != nil {
		for _, t := range k.beside.tallies {
			t.reset(false, false, 0, 0)
		}
		working = slices.Concat(working, k.beside.workers)
	}
	if k.live != nil && lim.Dur > 0 {
		k.live.Begin(parts)
	}
	k.keep()
	r := &callRun{Phase: engine.Phase{Done: make(chan struct{})}, lim: lim}
	ctx, cancel := context.WithCancel(context.Background())
	r.ctx = ctx
	r.Cancel = func() {
		if r.Stop.Load() == engine.StopNow { // StopSoon lets calls under way end
			cancel()
		}
	}
	var ready, ended sync.WaitGroup
	gate := make(chan struct{})
	var leading sync.WaitGroup
	leading.Add(len(k.lead.workers))
	for _, w := range working {
		w.ops, w.end = 0, 0
		ready.Add(1)
		ended.Go(func() {
			if w.g == k.lead {
				defer leading.Done()
			}
			err := w.c.Begin(ctx, gen)
			ready.Done()
			<-gate
			if err == nil {
				err = w.loop(r)
			}
			switch {
			case err == nil, err == engine.ErrStop:
			case r.stalled.Load():
				r.fail(engine.PeerError(sh.String(), engine.ErrStalled, "the server's log, or a longer --timeout"))
			case r.Stop.Load() == engine.StopNow && reports.Code(err) != reports.ExitCorruption: // stopped
			default:
				r.fail(w.failed(err))
			}
		})
	}
	over := make(chan struct{})
	var before engine.Usage
	var noiseBefore reports.Noise
	go func() {
		defer close(over)
		ready.Wait() // what a caller begins with is outside the window
		noiseBefore = engine.ReadProcessNoise()
		before = engine.ReadUsage()
		r.begin = engine.Now()
		for _, t := range k.lead.tallies {
			if t.series != nil {
				t.series.Start(r.begin)
			}
		}
		close(gate)
		leading.Wait()
		r.over.Store(true)
		ended.Wait()
	}()
	go func() {
		k.guard(r, over)
		cancel()
		r.Out = k.collect(r)
		r.Out.Usage = engine.ReadUsage().Minus(before)
		r.Out.Noise = engine.ProcessNoise(noiseBefore)
		close(r.Done)
	}()
	return &r.Phase
}

// guard ends the callers when nothing was answered for the timeout.
func (k *Calls) guard(r *callRun, over <-chan struct{}) {
	timeout := k.Sh.Timeout + k.lead.Gap
	if rate := k.lead.Rate; rate > 0 { // between two calls nothing is answered either
		timeout += time.Duration(float64(len(k.lead.workers)) * 1e9 / rate)
	}
	tick := time.NewTicker(min(timeout/4, 100*time.Millisecond))
	defer tick.Stop()
	last, since := int64(-1), engine.Now()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		var ops int64
		for _, t := range k.watched(r) {
			t.mu.Lock()
			ops += t.ops
			t.mu.Unlock()
		}
		if t := engine.Now(); ops != last {
			last, since = ops, t
		} else if t-since > int64(timeout) {
			if r.stalled.Swap(true) {
				go k.close() // a message may wait for room, whoever cancelled it
			}
			r.Halt(engine.StopNow)
		}
	}
}

func (k *Calls) collect(r *callRun) engine.Outcome {
	o := engine.Outcome{Begin: r.begin, Err: r.err}
	end := r.begin
	if k.beside != nil {
		o.Detail = k.beside.work(r.begin)
	}
	o.Shares = k.lead.shares(r.begin)
	for _, t := range k.lead.tallies {
		o.Ops += t.ops
		o.Bytes += t.bytes
		o.Late += t.late
		o.Unsent += t.unsent
		end = max(end, t.end)
		o.Rec, o.Service = engine.Merged(o.Rec, t.rec), engine.Merged(o.Service, t.service)
		if t.series != nil && !t.series.Ring {
			o.Series = engine.Merged(o.Series, t.series)
		}
	}
	o.Window = time.Duration(end - r.begin)
	return o
}

// loop makes calls until a limit. A window by duration ends at its deadline also when nothing is due.
func (w *callWorker) loop(r *callRun) (err error) {
	share, deadline := int64(math.MaxInt64), int64(math.MaxInt64)
	lead := w.g == w.k.lead
	if r.lim.Ops > 0 && lead {
		depth := int64(w.g.Each) // the limit is a connection's
		share = r.lim.Ops / depth
		if int64(w.slot) < r.lim.Ops%depth {
			share++
		}
	}
	if r.lim.Dur > 0 {
		deadline = r.begin + int64(r.lim.Dur)
	}
	if w.pace != nil {
		w.pace.Start(r.begin + w.shift)
	}
	var t0 int64
	for n := int64(0); n < share && r.Stop.Load() == 0 && (lead || !r.over.Load()); n++ {
		var due int64
		if w.g.Gap > 0 && n > 0 {
			if t := w.wait(r, min(t0+int64(w.g.Gap), deadline), 0); t >= deadline || r.Stop.Load() != 0 {
				break
			}
		}
		if w.pace != nil {
			due = w.pace.Due()
			switch t, late := w.awaitStart(r, min(due, deadline)); {
			case r.Stop.Load() != 0:
				return w.finish(engine.ErrStop)
			case t >= deadline:
				w.note(func(t *tally) { t.overdue(w.pace, deadline); t.end = max(t.end, deadline) })
				return w.finish(nil)
			case late:
				w.note(func(t *tally) { t.late++ })
			}
			w.pace.Next()
		}
		w.c.Prepare(n)
		t0 = engine.Now()
		if err := w.c.Call(); err != nil {
			return err
		}
		t1 := engine.Now()
		bytes, err := w.c.Check(t1 - t0)
		if err != nil {
			return err
		}
		ns := t1 - t0
		if w.pace != nil {
			ns = t1 - due
		}
		w.t.add(t1, ns, t1-t0, bytes)
		w.ops, w.end = w.ops+1, t1
		if w.raw != nil {
			w.raw.Take(t1, ns, t1-t0)
		}
		switch {
		case r.Stop.Load() != 0:
			return w.finish(engine.ErrStop)
		case t1 >= deadline && w.pace == nil:
			return w.finish(nil)
		}
	}
	if r.Stop.Load() != 0 {
		return w.finish(engine.ErrStop)
	}
	return w.finish(nil)
}

// finish ends the phase of this caller; what it waits for is inside the window.
func (w *callWorker) finish(how error) error {
	if err := w.c.End(); err != nil {
		return err
	}
	if w.g.Untimed { // the end proves what was sent
		t := engine.Now()
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
	// sleepSlack is how much too late a sleep may end; few callers wait for the rest awake.
	sleepSlack = 100_000 // ns
	fewCallers = 8
	// paceSleep bounds one sleep, so that an interrupt is noticed.
	paceSleep = 50_000_000 // ns
)

// awaitStart waits until t and returns the time, and whether t had come before. The runtime's timers may be a ms late.
func (w *callWorker) awaitStart(r *callRun, t int64) (at int64, late bool) {
	slack := int64(0)
	if len(w.g.workers) <= fewCallers {
		slack = sleepSlack
	}
	if at = engine.Now(); at >= t {
		return at, true
	}
	return w.wait(r, t, slack), false
}

// wait waits until t, of which the last slack awake, and returns the time.
func (w *callWorker) wait(r *callRun, t, slack int64) int64 {
	at := engine.Now()
	for at < t && r.Stop.Load() == 0 {
		if left := t - at - slack; left > 0 {
			Sleep(min(left, paceSleep)) // an interrupted one is gone on with
		} else {
			runtime.Gosched()
		}
		at = engine.Now()
	}
	return at
}
