package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// limits end a phase: operations per QP, or time from the worker's start,
// whichever comes first; 0 means no such limit. A target has neither and runs
// until it is told to stop.
type limits struct {
	ops int64
	dur time.Duration
}

// worker is one thread's share of a phase.
type worker struct {
	sh    *Shape
	side  string // client or server, for messages
	lanes []*lane
	rec   *reports.Recorder

	// What is kept beside the histogram, nil for what nobody asked for. watched is
	// set before the loop when there is any.
	watched bool
	series  *series
	raw     *rawBuffer
	peak    *peak // of the client's streams; nil: none

	// Open loop: when operations are due, and the latencies without their waits.
	pace      *Pacer
	paceShift int64 // ns
	service   *reports.Recorder
	late      int64 // operations that started after they were due
	unsent    int64 // due when the window ended, and not started

	done []transports.Done
	cpu  int // to pin to; negative: none

	pinned bool

	stop       *atomic.Uint32  // stopSoon or stopNow: leave the loop at the next look
	ctx        context.Context // ends event waits together with stop
	event      bool
	volleys    bool // the loop takes its steps in one call each
	calm       bool // nothing but the workers works here
	oneProcess bool // the other side's workers are threads of this process
	finishing  bool // bringing home what was posted: stopSoon does not end that

	lim   limits
	stall int64 // longest wait without a completion, ns; 0: for ever (targets)

	// Waiting.
	spins     uint32
	waitStart int64
	wait      context.Context // bounds one Wait; renewed now and then
	waitEnd   context.CancelFunc
	waitMade  int64
	offers    offers
	looked    int64 // when it looked last, ns
	haste     uint  // it looks after spinLook >> haste empty polls
	lulls     bool  // it sleeps while its device is at work on a stream (lullOf)

	// Outcome.
	begin, end int64 // monotonic ns
	ops        int64
	bad        *CorruptionError
}

// spinLook is how many empty polls pass between two looks at the stop flag and
// the clock. An empty poll of a soft transport is a system call of about 200 ns,
// so this is some 50 µs. Where polls take longer there are fewer (hasten).
const spinLook = 256

// mostDone is how many completions one poll gives: those of a volley's asks or answers
// and of what arrived.
const mostDone = 2 * latencySlots

func newWorker(sh *Shape, side string, cpu int) *worker {
	w := &worker{sh: sh, side: side, cpu: cpu, done: make([]transports.Done, mostDone), event: sh.Polling == PollingEvent}
	if side == sideClient {
		// Time for the bytes under way at 10 MB/s comes on top of the timeout: the
		// limit is for peers that are gone, not for slow ones.
		bytes := int64(sh.Size) * int64(max(sh.Depth, 2)) * int64(sh.QPs)
		if sh.Workload == WorkloadParamServer {
			bytes = 2 * int64(sh.Size) // out and back, however many tensors
		}
		w.stall = int64(sh.Timeout) + bytes*100
	}
	return w
}

// Sides, in messages and parameters.
const (
	sideClient = "client"
	sideServer = "server"
	sideBoth   = "both" // of who measured
)

// Values of the stop flag.
const (
	stopSoon uint32 = 1 + iota // end the measurement, but in order
	stopNow                    // the peer is gone or the run is lost
)

// mayFinish tells whether a stopped stream may still wait for its last
// completions, and lets it.
func (w *worker) mayFinish() bool {
	w.finishing = w.stop.Load() != stopNow
	w.close()
	w.ctx = context.Background() // the phase's context ended with the stop
	return w.finishing
}

// open begins the window.
func (w *worker) open() {
	w.begin = now()
	if w.peak != nil {
		w.peak.start(w.begin)
	}
	if w.series != nil {
		w.series.start(w.begin)
	}
}

// stopped tells whether somebody set the flag.
func (w *worker) stopped() bool { return w.stop.Load() != 0 }

// poll moves finished operations of one lane into w.done. An empty poll goes
// through idle.
func (w *worker) poll(l *lane) (int, error) {
	n, err := l.s.Poll(w.done)
	if n > 0 {
		w.spins = 0
		return n, nil
	}
	if err != nil {
		return 0, w.lost(l, "poll", err)
	}
	return 0, w.idle(l)
}

// idle is the wait of every loop: cheap most of the time.
func (w *worker) idle(l *lane) error {
	w.spins++
	if !w.event && w.spins&(spinLook>>w.haste-1) != 0 {
		return nil
	}
	return w.look(l)
}

// errStop leaves a loop because the stop flag is set.
var errStop = errors.New("stopped")

// look checks the stop flag and the stall limit, and sleeps in event mode.
func (w *worker) look(l *lane) error {
	if stop := w.stop.Load(); stop == stopNow || stop == stopSoon && !w.finishing {
		return errStop
	}
	t := now()
	first := w.spins <= spinLook // in this wait
	if first {
		w.waitStart = t
		w.spins = max(w.spins, spinLook) + 1 // event mode looks at once
	}
	if w.stall > 0 && t-w.waitStart > w.stall {
		return w.lost(l, "wait", fmt.Errorf("%w for %v", errStalled, time.Duration(w.stall).Round(time.Millisecond)))
	}
	if !w.event {
		w.hasten(t, first)
		w.offers.offer(t, w.waitStart)
		return nil
	}
	return w.sleep(l, t)
}

// mostHaste makes a look after every eighth poll at most. Arbitrary, as are the bounds
// of hasten.
const mostHaste = 5

// hasten has a worker look more often where its polls take long, so that it offers its
// CPU in time: a poll takes 60 ns of a device's queue, and 2 us where code is translated.
func (w *worker) hasten(t int64, first bool) {
	if !first && w.offers.last != w.looked { // nobody had the CPU in between
		switch d := t - w.looked; {
		case d > 3*leastPatience && w.haste < mostHaste:
			w.haste++
		case d < leastPatience/2 && w.haste > 0:
			w.haste--
		}
	}
	w.looked = t
}

// waitSlice bounds one event wait. Arbitrary; a context costs allocations, so it
// lives for many waits.
const waitSlice = int64(time.Second)

func (w *worker) sleep(l *lane, t int64) error {
	if w.wait == nil || t-w.waitMade > waitSlice/2 {
		if w.waitEnd != nil {
			w.waitEnd()
		}
		w.wait, w.waitEnd = context.WithTimeout(w.ctx, time.Duration(waitSlice))
		w.waitMade = t
	}
	err := l.s.Wait(w.wait)
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return errStop
	case w.wait.Err() != nil:
		return nil // the slice ended; look decides whether it was too long
	}
	return w.lost(l, "wait", err)
}

// lost is the error of a session that does not work any more.
func (w *worker) lost(l *lane, operation string, err error) error {
	return peerError(l.sh.Point.String(), fmt.Errorf("qp %d: %s: %w", l.index, operation, err),
		"the log of the "+other(w.side)+" side")
}

func other(side string) string {
	if side == sideClient {
		return sideServer
	}
	return sideClient
}

// post starts all of ops. It is for ping-pongs, whose queues are never more than
// a quarter full: a full queue is a fault of the transport.
func (w *worker) post(l *lane, ops []transports.Op) error {
	n, err := l.s.Post(ops)
	if n == len(ops) {
		return nil
	}
	return w.lost(l, "post "+ops[n].Kind.String(), err)
}

// corrupt remembers the first corruption; the phase ends with it.
func (w *worker) corrupt(l *lane, what string, offset int, want, got byte) error {
	if w.bad == nil {
		w.bad = &CorruptionError{Point: l.sh.Point.String(), Side: w.side, QP: l.index, What: what, Offset: offset, Want: want, Got: got}
	}
	return corrupted(w.bad)
}

// close ends what the worker holds for waiting.
func (w *worker) close() {
	if w.waitEnd != nil {
		w.waitEnd()
		w.wait, w.waitEnd = nil, nil
	}
}
