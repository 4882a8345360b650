package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/reports"
)

// callCrew is the client's side of a point: its connections, and the goroutines
// that call on them.
type callCrew struct {
	m       *measurement
	work    *callWork
	conns   []carrier.Conn
	workers []*callWorker
	tallies []*tally

	// Resident memory of both sides before the connections and behind the work, bytes.
	base, used, serverBase, serverUsed int64

	// Processor time of both sides while nothing was called; idleFor is 0 until then.
	idle, idleServer, idleFor time.Duration

	interval time.Duration // of a series over the next phase, 0 for none
	raw      *rawStore     // for the samples of the next phase, nil for none
}

// runCalls takes a point of a workload of calls through its phases.
func (m *measurement) runCalls(ctx context.Context) error {
	c, sh, p := m.c, m.sh, &m.c.plan
	car, err := carrierOf(c.tr)
	if err != nil {
		return err
	}
	if c.raw != nil {
		c.raw.share(sh.QPs * sh.Depth) // in every reading of what is resident, like the histograms
	}
	answer, err := c.ask(ctx, sh, &message{Type: msgPoint, Shape: sh}, msgListening)
	if err != nil {
		return err
	}
	addr, err := c.dataAddr(sh, answer)
	if err != nil {
		return err
	}
	if _, err := c.hear(ctx, sh, msgConnected); err != nil {
		return err
	}
	crew := newCallCrew(m)
	crew.serverBase = answer.Listening.Resident
	m.callers = crew
	defer crew.close()
	if err := crew.connect(ctx, car, addr); err != nil {
		return err
	}
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.warm, _, err = crew.phase(ctx, "warm-up", genWarmup, limits{p.WarmupIterations, p.WarmupDuration}); err != nil {
			return err
		}
	}
	if err := crew.idles(ctx); err != nil {
		return err
	}
	crew.interval, crew.raw = p.Interval, c.raw
	m.out, m.report, err = crew.phase(ctx, "measure", genMeasure, limits{p.Iterations, p.Duration})
	crew.interval, crew.raw = 0, nil
	if e := m.handBuffers(reports.SamplesLatency, m.out, crew.kept()); err == nil {
		err = e
	}
	if err != nil {
		m.fail(ctx)
		return err
	}
	m.verified = sh.Verify
	if err := crew.memory(ctx); err != nil {
		return err
	}
	_, err = c.ask(ctx, sh, &message{Type: msgEnd}, msgEnded)
	return err
}

// newCallCrew has its histograms before it reads what is resident without connections.
func newCallCrew(m *measurement) *callCrew {
	k := &callCrew{m: m, work: m.sh.calls()}
	k.tallies = make([]*tally, min(m.sh.QPs*m.sh.Depth, maxTallies))
	for i := range k.tallies {
		k.tallies[i] = &tally{}
		k.tallies[i].reset(k.timed(), m.sh.Rate > 0, 0, 0)
	}
	k.base = resident()
	return k
}

// timed tells whether latencies mean something.
func (k *callCrew) timed() bool { return k.work.untimed == nil || !k.work.untimed(k.m.sh) }

// dialsAtOnce bounds connections being made at once. Arbitrary: below the backlog of
// every listener.
const dialsAtOnce = 16

// connect opens all connections and makes the callers.
func (k *callCrew) connect(ctx context.Context, car *carrier.Carrier, addr string) error {
	sh := k.m.sh
	setup, cancel := context.WithTimeout(ctx, patience(sh)+time.Duration(sh.QPs)*10*time.Millisecond)
	defer cancel()
	unhook := context.AfterFunc(k.m.c.ctl.alive, cancel)
	defer unhook()
	k.conns = make([]carrier.Conn, sh.QPs)
	errs := make([]error, dialsAtOnce)
	var next atomic.Int64
	var dials sync.WaitGroup
	for i := range errs {
		dials.Go(func() {
			for n := int(next.Add(1)) - 1; n < sh.QPs && errs[i] == nil; n = int(next.Add(1)) - 1 {
				if k.conns[n], errs[i] = car.Connect(setup, addr); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	dials.Wait()
	var err error
	for _, e := range errs { // the one that ended the others is no end of a context
		if e != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = e
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted()
	case err != nil:
		return k.m.c.explain(callConnectFailed(car, err))
	}
	caller := k.work.callers(sh)
	for i, conn := range k.conns {
		for j := range sh.Depth {
			n := i*sh.Depth + j
			c, err := caller(conn, n)
			if err != nil {
				return err
			}
			k.workers = append(k.workers, &callWorker{k: k, c: c, t: k.tallies[n%len(k.tallies)], index: n, slot: j})
		}
	}
	k.pacers()
	return nil
}

func callConnectFailed(car *carrier.Carrier, err error) error {
	if car.Caps().SameHost {
		return peerError("connect", err, "a server on this machine and in this network namespace: unix sockets go no further")
	}
	var exit *reports.ExitError
	if e := transportError("connect", err); !errors.As(e, &exit) || exit.Code != reports.ExitFailed {
		return e
	}
	return peerError("connect", err, "the data path: a firewall may pass the control port only")
}

func (k *callCrew) close() {
	var wg sync.WaitGroup // each may wait for its peer
	for _, c := range k.conns {
		if c != nil {
			wg.Go(func() { c.Close() })
		}
	}
	wg.Wait()
}

// pacers makes the callers' pacers. The rate is that of all together; constant
// arrivals interleave.
func (k *callCrew) pacers() {
	sh := k.m.sh
	if sh.Rate == 0 {
		return
	}
	n := len(k.workers)
	poisson := k.m.c.plan.Arrivals == ArrivalsPoisson
	for i, w := range k.workers {
		w.pace = NewPacer(float64(n)*1e9/sh.Rate, poisson, sh.Seed+uint64(i))
		if !poisson {
			w.shift = int64(float64(i) * 1e9 / sh.Rate)
		}
	}
}

// keep gives the callers room for the samples of the next phase. A phase that times
// nothing has none.
func (k *callCrew) keep() {
	for _, w := range k.workers {
		w.raw = nil
	}
	if k.raw == nil || !k.timed() {
		return
	}
	for i, b := range k.raw.share(len(k.workers)) {
		k.workers[i].raw = b
	}
}

// kept are the samples of the phase, caller by caller.
func (k *callCrew) kept() []*rawBuffer {
	buffers := make([]*rawBuffer, len(k.workers))
	for i, w := range k.workers {
		buffers[i] = w.raw
	}
	return buffers
}

// idles watches both sides while nothing is called.
func (k *callCrew) idles(ctx context.Context) error {
	_, rep, err := k.around(ctx, "idle", genIdle, func() *run {
		r := &run{done: make(chan struct{})}
		woken := make(chan struct{})
		r.cancel = sync.OnceFunc(func() { close(woken) })
		before := readUsage()
		begin := now()
		go func() {
			select {
			case <-time.After(idleWindow):
			case <-woken:
			}
			k.idleFor = time.Duration(now() - begin)
			k.idle = readUsage().minus(before).cpu
			close(r.done)
		}()
		return r
	})
	if rep != nil {
		k.idleServer = time.Duration(rep.CPUSeconds * 1e9)
	}
	return err
}

// memory reads what both sides hold with all connections open and warm.
func (k *callCrew) memory(ctx context.Context) error {
	k.used = resident()
	_, rep, err := k.around(ctx, "memory", genMemory, func() *run {
		r := &run{done: make(chan struct{}), cancel: func() {}}
		close(r.done)
		return r
	})
	if err == nil && rep != nil {
		k.serverUsed = rep.Resident
	}
	return err
}

// around runs something on this side inside a phase of the server.
func (k *callCrew) around(ctx context.Context, name string, gen int, start func() *run) (*outcome, *phaseReport, error) {
	m, c, sh := k.m, k.m.c, k.m.sh
	collectAsUsed()
	changes := countersAround(c.counters, gen)
	if _, err := c.ask(ctx, sh, &message{Type: msgPhase, Phase: &phaseStart{Name: name, Generation: gen}}, msgReady); err != nil {
		return nil, nil, err
	}
	out, err := m.watch(ctx, start())
	if moved := changes(); moved != nil {
		m.counters.Client = moved
	}
	if err != nil {
		return out, nil, err
	}
	fctx := ctx
	if ctx.Err() != nil { // the server is still told, so that the result has both sides
		var cancel context.CancelFunc
		fctx, cancel = context.WithTimeout(context.Background(), grace)
		defer cancel()
	}
	answer, err := c.ask(fctx, sh, &message{Type: msgStop, Stop: &phaseStop{Check: sh.Verify}}, msgReport)
	if err != nil {
		return out, nil, err
	}
	if ctx.Err() != nil {
		return out, answer.Report, interrupted()
	}
	return out, answer.Report, nil
}

func (k *callCrew) phase(ctx context.Context, name string, gen int, lim limits) (*outcome, *phaseReport, error) {
	return k.around(ctx, name, gen, func() *run { return k.start(gen, lim) })
}

// failed is the error of a caller, which it names.
func (w *callWorker) failed(err error) error {
	if sh := w.k.m.sh; sh.QPs > 1 {
		err = fmt.Errorf("connection %d: %w", w.index/sh.Depth, err)
	}
	return callFailed(w.k.m.sh, err)
}
