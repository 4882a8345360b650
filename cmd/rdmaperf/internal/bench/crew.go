package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// crew is one side of one point: its sessions, shared out among workers.
type crew struct {
	sh       *Shape
	side     string
	lanes    []*lane
	workers  []*worker
	interval time.Duration // of a series over the next phase, 0 for none
	raw      *rawStore     // for the samples of the next phase, nil for none
	fresh    bool          // the first receives are still to be posted
	parts    parts         // head-of-line, client: what the next phase does
	pace     *Pacer        // head-of-line, client: of the probes
	train    training      // parameter server, client: what the next phase does
	trainer  *trainer      // that of the phase
	classes  classes       // starvation, client: what the next phase does
	rivals   *rivals       // those of the phase
}

// newCrew takes over the sessions, unless it fails. cpu pins the worker when it is not negative.
func newCrew(sh *Shape, side string, sessions []transports.Session, cpu int, caps transports.Caps) (_ *crew, err error) {
	c := &crew{sh: sh, side: side, fresh: true}
	defer func() {
		if err != nil {
			for _, l := range c.lanes {
				l.ref.Free()
			}
		}
	}()
	for i := range sh.sideThreads(side) {
		if i > 0 {
			cpu = -1 // one CPU was named; the kernel places the others
		}
		w := newWorker(sh, side, cpu)
		w.event = w.event || side == sideServer && sh.dozes()
		w.volleys = caps.Volleys && sh.Workload == WorkloadLatency && !w.event
		w.calm, w.oneProcess = caps.Unaided && !w.event, caps.Label == rdma.LabelMem
		w.lulls = caps.Unaided && sh.lulls(side)
		w.offers.naps = w.lulls && side == sideServer
		c.workers = append(c.workers, w)
	}
	for i, s := range sessions {
		if len(s.Local()) < sh.window() || s.RemoteLen() < uint64(sh.window()) {
			return nil, failed("set up session", fmt.Errorf("qp %d: windows of %d and %d bytes, want %d", i, len(s.Local()), s.RemoteLen(), sh.window()))
		}
		l, err := newLane(s, sh, i)
		if err != nil {
			return nil, err
		}
		if sh.Bidirectional {
			// Bytes that a transport turned back must not pass for the peer's.
			if l.seedIn = ^sh.Seed; side == sideServer {
				l.seedOut, l.seedIn = l.seedIn, l.seedOut
			}
		}
		w := c.workers[i%len(c.workers)]
		w.lanes = append(w.lanes, l)
		c.lanes = append(c.lanes, l)
	}
	reserveProcs(len(c.workers))
	return c, nil
}

// close ends the sessions and gives the processors back.
func (c *crew) close() error {
	var errs []error
	for _, l := range c.lanes {
		if err := l.close(); err != nil {
			errs = append(errs, fmt.Errorf("qp %d: close: %w", l.index, err))
		}
	}
	releaseProcs(len(c.workers))
	return errors.Join(errs...)
}

// prepare makes the windows of a phase: fresh patterns in the sources, zeros in
// the destinations, and the first receives.
func (c *crew) prepare(gen int) error {
	for _, l := range c.lanes {
		l.iter = 0
		clear(l.mem[c.sh.rxOff():c.sh.dataEnd()])
		if c.source() {
			l.fillSource(gen)
		}
		l.keepReference(gen)
		switch {
		case c.sh.Bidirectional:
			l.seekDuplex()
		case c.sh.streaming():
			l.seek()
		}
		if c.sh.Workload == WorkloadHOL {
			l.seekHOL()
		}
		if c.sh.Workload == WorkloadParamServer {
			l.posted = 0
		}
		if c.sh.Workload == WorkloadStarvation {
			l.posted, l.high = 0, 0
		}
		if c.fresh && (c.sh.Bidirectional || c.sh.Arrival == ArrivalMessage || c.sh.Arrival == ArrivalNotify) {
			if err := c.firstReceives(l); err != nil {
				return err
			}
		}
	}
	c.fresh = false
	return nil
}

// counts is what this side sent, by QP.
func (c *crew) counts() []laneCount {
	counts := make([]laneCount, len(c.lanes))
	for i, l := range c.lanes {
		counts[i] = laneCount{First: l.first, Count: l.posted, High: l.high}
	}
	return counts
}

// source tells whether this side's sources are used: the client's, and the
// server's when the client reads them.
func (c *crew) source() bool {
	if c.sh.Bidirectional {
		return true
	}
	if c.sh.kind() == transports.KindRead {
		return c.side == sideServer
	}
	return c.side == sideClient && !isAtomic(c.sh.kind())
}

func (c *crew) firstReceives(l *lane) error {
	var ops []transports.Op
	if d := l.duplex; d != nil {
		for i := range d.firstPost {
			ops = append(ops, l.recvs[i%l.recvRing()])
		}
		l.recvHead = d.firstPost % l.recvRing()
	} else if c.side == sideClient && c.sh.streaming() {
		for i := range ctlSlots {
			ops = append(ops, l.ctlRecv(i))
		}
	} else if c.sh.Workload == WorkloadHOL {
		ops = l.recvs
	} else {
		for i := range c.sh.RecvDepth {
			ops = append(ops, l.recvs[i%c.sh.Slots])
		}
		l.recvHead = c.sh.RecvDepth % c.sh.Slots
	}
	if n, err := l.s.Post(ops); n < len(ops) {
		return failed("post receives", fmt.Errorf("qp %d: %d of %d: %w", l.index, n, len(ops), err))
	}
	return nil
}

// streams tells whether this side's loop is stream.
func (c *crew) streams() bool {
	return c.side == sideClient && c.sh.streaming() && !c.sh.Bidirectional
}

// loop chooses the loop of this side before it starts.
func (c *crew) loop() func(*worker) error {
	k := c.sh.kind()
	if c.sh.Bidirectional {
		return (*worker).converse
	}
	if c.side == sideServer && c.sh.dozes() {
		return (*worker).doze
	}
	if c.side == sideServer && c.sh.Idle {
		return (*worker).rest
	}
	if c.side == sideServer {
		turn := sinkTurn
		if c.sh.Workload == WorkloadHOL {
			turn = holTurn
		}
		if c.sh.Workload == WorkloadLatency {
			switch {
			case c.sh.Arrival == ArrivalMemory:
				turn = memoryTurn
			case c.sh.Arrival == ArrivalNotify:
				turn = notifyTurn
			case !oneSided(k):
				turn = echoTurn
			}
		}
		return func(w *worker) error {
			if answer := answering(c.sh); answer != nil && w.volleys && len(w.lanes) == 1 {
				return w.turns(answer) // looking long at one lane would keep others waiting
			}
			return w.turns(turn)
		}
	}
	if c.streams() {
		return (*worker).stream
	}
	if c.sh.Workload == WorkloadHOL {
		d := newDuet(c.workers[0], c.parts, c.pace)
		return func(*worker) error { return d.run() }
	}
	if c.sh.Workload == WorkloadParamServer {
		c.trainer = newTrainer(c.workers[0], c.train)
		return func(*worker) error { return c.trainer.run() }
	}
	if c.sh.Workload == WorkloadStarvation {
		c.rivals = newRivals(c.workers[0], c.classes)
		return func(*worker) error { return c.rivals.run() }
	}
	x := messages
	switch {
	case c.sh.Arrival == ArrivalMemory, c.sh.Arrival == ArrivalNotify:
		x = writes
	case k == transports.KindRead:
		x = reads
	case isAtomic(k):
		x = atomics
	}
	sample := x.sample
	if c.sh.Arrival == ArrivalNotify {
		sample = notifySample
	}
	if c.sh.Rate > 0 {
		return func(w *worker) error { return w.paced(x.divide, sample) }
	}
	return func(w *worker) error {
		if w.volleys && len(w.lanes) == 1 && c.sh.volleySteps() > 1 && c.sh.Arrival != ArrivalNotify {
			return w.eachVolley(&x, w.lanes[0])
		}
		return w.each(x.divide, sample)
	}
}

// outcome is what one side's phase gave.
type outcome struct {
	rec *reports.Recorder // client, latency

	// Open loop.
	service      *reports.Recorder
	late, unsent int64

	series *series
	peak   *peak

	ops    int64
	bytes  int64 // of calls: payload in both directions
	begin  int64 // of the window
	window time.Duration
	stages *[numStages]*reports.Recorder // connection set-up, client
	shares []share                       // incast, client: of each worker
	times  []float64                     // parameter server: of the iterations, ns
	ended  [2]int64                      // starvation: operations by class
	usage  usage
	err    error // the first failure; a corruption wins
}

// run is a phase in progress.
type run struct {
	stop   atomic.Uint32
	cancel context.CancelFunc
	done   chan struct{} // closed when all workers are joined
	out    outcome       // valid then
}

// start lets the workers go. They begin only when all stand ready, so that
// starting threads is outside the window.
func (c *crew) start(lim limits, record bool) *run {
	r := &run{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	loop := c.loop()
	gate := make(chan struct{})
	errs := make([]error, len(c.workers))
	var ready, ended sync.WaitGroup
	for _, w := range c.workers {
		w.begin, w.end, w.ops, w.bad, w.spins, w.finishing = 0, 0, 0, nil, 0, false
		w.stop, w.ctx, w.lim = &r.stop, ctx, lim
		if record && w.rec == nil {
			w.rec = reports.NewRecorder()
		} else if record {
			w.rec.Reset()
		}
		w.late, w.unsent, w.series, w.raw = 0, 0, nil, nil
		if c.interval > 0 && lim.dur > 0 {
			w.series = newSeries(c.interval, lim.dur)
		}
		if w.peak = nil; c.streams() {
			w.peak = new(peak) // the outcome of the phase before keeps its own
		}
		if w.pace != nil && w.service == nil {
			w.service = reports.NewRecorder()
		} else if w.pace != nil {
			w.service.Reset()
		}
	}
	if record && c.raw != nil {
		c.raw.prepare(c.workers)
	}
	for i, w := range c.workers {
		w.watched = w.series != nil || w.raw != nil
		ready.Add(1)
		ended.Add(1)
		onOwnThread(func() {
			defer ended.Done()
			w.pinned = w.cpu >= 0 && pinThread(w.cpu)
			if w.calm {
				if !w.oneProcess {
					ownFiles()
				}
				defer calmOthers(!w.oneProcess)()
			}
			errs[i] = c.sh.beNice()
			ready.Done()
			<-gate
			if errs[i] == nil {
				errs[i] = loop(w)
			}
			w.close()
			if errs[i] != nil && errs[i] != errStop {
				r.halt(stopSoon) // the others need not go on
			}
		})
	}
	ready.Wait()
	before := readUsage()
	close(gate)
	go func() {
		ended.Wait()
		cancel()
		r.out = c.collect(errs)
		r.out.usage = readUsage().minus(before)
		close(r.done)
	}()
	return r
}

// halt ends the phase; the strongest word counts.
func (r *run) halt(how uint32) {
	for {
		old := r.stop.Load()
		if old >= how || r.stop.CompareAndSwap(old, how) {
			break
		}
	}
	r.cancel()
}

// wait joins the workers.
func (r *run) wait() *outcome {
	<-r.done
	return &r.out
}

// collect merges what the workers have.
func (c *crew) collect(errs []error) outcome {
	var o outcome
	var begin, end int64
	for i, w := range c.workers {
		if i == 0 || w.begin < begin {
			begin = w.begin
		}
		end = max(end, w.end)
		o.ops += w.ops
		if c.sh.Workload == WorkloadIncast {
			o.shares = append(o.shares, share{w.ops, time.Duration(max(0, w.end-w.begin))})
		}
		o.late += w.late
		o.unsent += w.unsent
		if w.rec != nil {
			if o.rec == nil {
				o.rec = w.rec
			} else {
				o.rec.Merge(w.rec)
			}
		}
		if w.series != nil {
			if o.series == nil {
				o.series = w.series
			} else {
				o.series.merge(w.series)
			}
		}
		if w.peak != nil {
			if o.peak == nil {
				o.peak = w.peak
			} else {
				o.peak.merge(w.peak)
			}
		}
		if w.service != nil {
			if o.service == nil {
				o.service = w.service
			} else {
				o.service.Merge(w.service)
			}
		}
		switch err := errs[i]; {
		case err == errStop: // told to, and that is no failure
		case err != nil && (o.err == nil || reports.Code(err) == reports.ExitCorruption):
			o.err = err
		}
	}
	if c.rivals != nil {
		o.ended = c.rivals.ended
	}
	if c.trainer != nil {
		o.times = c.trainer.times
	}
	o.begin = begin
	o.window = time.Duration(max(0, end-begin))
	return o
}
