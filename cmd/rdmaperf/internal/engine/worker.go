package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Limits end a phase: operations per QP, or time from the worker's start, whichever comes first; 0 means no limit.
type Limits struct {
	Ops int64
	Dur time.Duration
}

// Worker is one thread's share of a phase.
type Worker struct {
	Sh    *Shape
	Role  string // client or server, for messages
	Index int
	Lanes []*Lane
	Rec   *reports.Recorder
	// What is kept beside the histogram, nil for what nobody asked for. Watched: there is any.
	Watched bool
	series  *Series
	Raw     *RawBuffer
	Peak    *Peak // of the client's streams; nil: none
	// Open loop: when operations are due, and the latencies without their waits.
	Pace       *Pacer
	PaceShift  int64 // ns
	Service    *reports.Recorder
	Late       int64 // operations that started after they were due
	Unsent     int64 // due when the window ended, and not started
	Unanswered int64 // started, and not complete when the window ended

	Done       []transports.Done
	cpu        int // to pin to; negative: none
	pinned     bool
	Stop       *atomic.Uint32  // StopSoon or StopNow: leave the loop at the next check
	Ctx        context.Context // ends event waits together with stop
	Event      bool
	demotes    bool  // it demotes the other threads: nothing but the workers works here
	oneProcess bool  // the other side's workers are threads of this process
	Finishing  bool  // completing what was posted: StopSoon does not end that
	appWork    int64 // ns that the application computes for each message; of the server
	Lim        Limits
	stall      int64 // longest wait without a completion, ns; 0: for ever (targets)
	Spins      uint32
	waitStart  int64
	patience   Patience
	wait       context.Context // bounds one Wait; renewed now and then
	waitEnd    context.CancelFunc
	waitMade   int64
	Yielder    Yielder
	checked    int64 // when it last checked the clock, ns
	checkShift uint  // it checks after SpinCheck >> checkShift empty polls
	Sleeps     bool  // it sleeps while its device is at work on a stream (SleepTime)
	Begin, End int64 // monotonic ns
	Ops        int64
	bad        *CorruptionError
	noise      reports.Noise
	Numbered   bool     // messages carry numbers
	Compared   Compared // of the phase
}

// SpinCheck is how many empty polls pass between two checks of the flag and the clock; fewer where polls take long.
const SpinCheck = 256

func NewWorker(sh *Shape, role string, cpu int) *Worker {
	w := &Worker{Sh: sh, Role: role, cpu: cpu, Done: make([]transports.Done, 2*LatencySlots),
		Event: sh.Polling == PollingEvent, Numbered: sh.Numbered()}
	if role == SideServer {
		w.appWork = int64(sh.AppWork)
	}
	if role == SideClient {
		// On top of the timeout, which is for peers that are gone, not for slow ones.
		w.UnderWay(int64(sh.Size) * int64(max(sh.Depth, 2)) * int64(sh.QPs))
	}
	return w
}

// UnderWay says how many bytes are under way at most, for which the client waits as long as 10 MB/s take.
func (w *Worker) UnderWay(bytes int64) { w.stall = max(int64(w.Sh.Timeout), bytes*100) }

// Sides, in messages and parameters.
const (
	SideClient = "client"
	SideServer = "server"
	SideBoth   = "both" // of who measured
)

// Values of the stop flag.
const (
	StopSoon uint32 = 1 + iota // end the measurement, but in order
	StopNow                    // the peer is gone or the run is lost
)

// MayFinish reports whether a stopped stream may still wait for its last completions, and lets it.
func (w *Worker) MayFinish() bool {
	w.Finishing = w.Stop.Load() != StopNow
	w.close()
	w.Ctx = context.Background() // the phase's context ended with the stop
	return w.Finishing
}

// Open begins the window and what paces it, and returns when it ends.
func (w *Worker) Open() (deadline int64) {
	if w.Peak != nil {
		w.Peak.exact(w.Lim, len(w.Lanes))
	}
	w.Begin = Now()
	if w.Pace != nil {
		w.Pace.Start(w.Begin + w.PaceShift)
	}
	if w.Peak != nil {
		w.Peak.start(w.Begin)
	}
	if w.series != nil {
		w.series.Start(w.Begin)
	}
	if w.Lim.Dur > 0 {
		return w.Begin + int64(w.Lim.Dur)
	}
	return math.MaxInt64
}

// Finish completes what a loop posted that ended with err, unless the run is lost.
func (w *Worker) Finish(err error, drain func() error) error {
	if err == nil || err == ErrStop && w.MayFinish() {
		return cmp.Or(drain(), err)
	}
	return err
}

// Stopped reports whether somebody set the flag.
func (w *Worker) Stopped() bool { return w.Stop.Load() != 0 }

// Poll moves finished operations of one lane into w.Done. An empty poll goes through Idle.
func (w *Worker) Poll(l *Lane) (int, error) {
	n, err := w.PollOnce(l)
	if n > 0 || err != nil {
		return n, err
	}
	return 0, w.Idle(l)
}

// PollOnce is Poll without a wait.
func (w *Worker) PollOnce(l *Lane) (int, error) {
	n, err := l.S.Poll(w.Done)
	switch {
	case n > 0:
		w.Spins = 0
		if w.appWork > 0 {
			w.compute(n)
		}
		return n, nil
	case err != nil:
		return 0, w.Lost(l, "poll", err)
	}
	return 0, nil
}

// Idle is the wait of every loop: cheap most of the time.
func (w *Worker) Idle(l *Lane) error {
	w.Spins++
	if !w.Event && w.Spins&(SpinCheck>>w.checkShift-1) != 0 {
		return nil
	}
	return w.check(l)
}

// ErrStop leaves a loop because the stop flag is set.
var ErrStop = errors.New("stopped")

func (w *Worker) check(l *Lane) error {
	if stop := w.Stop.Load(); stop == StopNow || stop == StopSoon && !w.Finishing {
		return ErrStop
	}
	t := Now()
	first := w.Spins <= SpinCheck // in this wait
	if first {
		w.waitStart = t
		w.Spins = max(w.Spins, SpinCheck) + 1 // event mode checks at once
	}
	if w.stall > 0 && t-w.waitStart > w.stall && w.patience.Over(w.waitStart, t, w.stall) {
		took := time.Duration(t - w.waitStart)
		return w.Lost(l, "wait", fmt.Errorf("%w for %v", ErrStalled, took.Round(time.Millisecond)))
	}
	if !w.Event {
		w.adaptChecks(t, first)
		w.Yielder.yieldIfDue(t, w.waitStart)
		return nil
	}
	return w.sleep(l, t)
}

// mostChecks is a check after every eighth poll at most.
const mostChecks = 5

// adaptChecks checks more often where polls take long: 60 ns of a device's queue, 2 us where code is translated.
func (w *Worker) adaptChecks(t int64, first bool) {
	if !first && w.Yielder.last != w.checked { // nobody had the CPU in between
		switch d := t - w.checked; {
		case d > 3*yieldAfter && w.checkShift < mostChecks:
			w.checkShift++
		case d < yieldAfter/2 && w.checkShift > 0:
			w.checkShift--
		}
	}
	w.checked = t
}

// waitSlice bounds one event wait. A context costs allocations, so it lives for many waits.
const waitSlice = int64(time.Second)

func (w *Worker) sleep(l *Lane, t int64) error {
	if w.wait == nil || t-w.waitMade > waitSlice/2 {
		if w.waitEnd != nil {
			w.waitEnd()
		}
		w.wait, w.waitEnd = context.WithTimeout(w.Ctx, time.Duration(waitSlice))
		w.waitMade = t
	}
	err := l.S.Wait(w.wait)
	switch {
	case err == nil:
		return nil
	case w.Ctx.Err() != nil:
		return ErrStop
	case w.wait.Err() != nil:
		return nil // the slice ended; check decides whether it was too long
	}
	return w.Lost(l, "wait", err)
}

// Lost is the error of a session that does not work any more.
func (w *Worker) Lost(l *Lane, operation string, err error) error {
	return PeerError(l.Sh.String(), fmt.Errorf("qp %d: %s: %w", l.Index, operation, err),
		"the log of the "+other(w.Role)+" side")
}

func other(side string) string {
	if side == SideClient {
		return SideServer
	}
	return SideClient
}

// Post starts all of ops. It is for ping-pongs, where a full queue is a fault of the transport.
func (w *Worker) Post(l *Lane, ops []transports.Op) error {
	n, err := l.S.Post(ops)
	if n == len(ops) {
		return nil
	}
	return w.Lost(l, "post "+ops[n].Kind.String(), err)
}

// TryPost starts one operation; false says that the queue is full.
func (w *Worker) TryPost(l *Lane, op transports.Op) (bool, error) {
	l.Pair[0] = op
	switch _, err := l.S.Post(l.Pair[:1]); err {
	case nil:
		return true, nil
	case rdma.ErrQueueFull:
		return false, nil
	default:
		return false, w.Lost(l, "post "+op.Kind.String(), err)
	}
}

// Corrupt remembers the first corruption; the phase ends with it.
func (w *Worker) Corrupt(l *Lane, what string, offset int, want, got byte) error {
	if w.bad == nil {
		w.bad = &CorruptionError{Point: l.Sh.String(), Side: w.Role, QP: l.Index, What: what, Offset: offset,
			Want: want, Got: got}
	}
	return Corrupted(w.bad)
}

func (w *Worker) close() {
	if w.waitEnd != nil {
		w.waitEnd()
		w.wait, w.waitEnd = nil, nil
	}
}

// Took counts operations seen complete at t.
func (w *Worker) Took(t, n int64) {
	if w.Peak != nil {
		w.Peak.count(t, n)
	}
	if w.series != nil {
		w.series.count(t, n)
	}
}

// Record takes one latency that ended at t, and of an open loop its service time.
func (w *Worker) Record(t, ns, service int64) {
	w.Rec.Record(ns)
	if w.Watched {
		w.watch(t, ns, service)
	}
}

func (w *Worker) watch(t, ns, service int64) {
	if w.series != nil {
		w.series.Sample(t, ns)
	}
	if w.Raw != nil {
		w.Raw.Take(t, ns, service)
	}
}

// CheckNow is Idle after a PingPong that met nothing, which polled many times.
func (w *Worker) CheckNow(l *Lane) error {
	w.Spins |= SpinCheck - 1
	return w.Idle(l)
}

// Rest is the target of reads and atomics that the device serves unaided: polls would only take from who measures.
func (w *Worker) Rest() error {
	w.Begin = Now()
	<-w.Ctx.Done()
	w.End = Now()
	return nil
}

// Overdue counts what was due before the end and not sent, with the time that it waited.
func (w *Worker) Overdue(end int64) { w.Unsent = w.Pace.Overdue(end, w.Rec.AtLeast) }

// compute is the application's work on the messages among n finished operations.
func (w *Worker) compute(n int) {
	messages := int64(0)
	for i := range w.Done[:n] {
		if w.Done[i].Kind == transports.KindRecv {
			messages++
		}
	}
	for end := Now() + messages*w.appWork; messages > 0 && Now() < end; {
	}
}
