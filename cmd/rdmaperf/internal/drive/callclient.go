package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// callers is the client's side of a point: its connections, and the goroutines
// that call on them.
type callers struct {
	m       *engine.Measurement
	work    *engine.CallWork
	conns   []transports.CallConn
	groups  []*callGroup
	workers []*callWorker // of all groups

	// Resident memory of both sides before the connections and behind the work, bytes.
	base, used, serverBase, serverUsed int64
	secret                             []byte // that connections show; nil: nothing

	// Processor time of both sides while nothing was called; idleFor is 0 until then.
	idle, idleServer, idleFor time.Duration

	lead, beside *callGroup // of the phase: who is measured, and who calls until they have ended (or nil)

	interval time.Duration    // of a series over the next phase, 0 for none
	live     *engine.Live     // follows the next phase, nil for nobody
	raw      *engine.RawStore // for the samples of the next phase, nil for none
}

// runCalls takes a point of a workload of calls through its phases: all of its callers do
// the same thing.
func runCalls(m *engine.Measurement, ctx context.Context) error {
	work := m.Sh.Calls()
	return RunCallGroups(m, ctx, CallPhases{Groups: []CallGroup{{
		Conns: m.Sh.QPs, Each: m.Sh.Depth, Untimed: work.Untimed != nil && work.Untimed(m.Sh), Rate: m.Sh.Rate,
		New: work.Callers(m.Sh)}}})
}

// RunCallGroups takes a point through its phases whose callers may do several things.
func RunCallGroups(m *engine.Measurement, ctx context.Context, phases CallPhases) error {
	c, sh, p := m.C, m.Sh, &m.C.Plan
	tr, err := engine.CallsOf(c.Tr)
	if err != nil {
		return err
	}
	if c.Raw != nil {
		c.Raw.Share(phases.callers()) // in every reading of what is resident, like the histograms
	}
	answer, err := c.Ask(ctx, sh, &engine.Message{Type: engine.MsgPoint, Shape: sh}, engine.MsgListening)
	if err != nil {
		return err
	}
	addr, err := c.DataAddr(sh, answer)
	if err != nil {
		return err
	}
	if _, err := c.Hear(ctx, sh, engine.MsgConnected); err != nil {
		return err
	}
	group := newCallers(m, phases.Groups)
	group.serverBase, group.secret = answer.Listening.Resident, p.Secret(answer.Listening.Token)
	m.Private = group
	defer group.close()
	if err := group.connect(ctx, tr, addr); err != nil {
		return err
	}
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.Warm, _, err = group.phase(ctx, "warm-up", engine.GenWarmup,
			engine.Limits{Ops: p.WarmupIterations, Dur: p.WarmupDuration}, phases.Measured); err != nil {
			return err
		}
	}
	if err := group.idles(ctx); err != nil {
		return err
	}
	limits := engine.Limits{Ops: p.Iterations, Dur: p.Duration}
	for _, before := range phases.Before {
		if err := group.ahead(ctx, before, limits); err != nil {
			m.Fail(ctx)
			return err
		}
	}
	group.interval, group.raw, group.live = p.Interval, c.Raw, c.Live
	m.Out, m.Report, err = group.phase(ctx, "measure", engine.GenMeasure, limits, phases.Measured)
	group.interval, group.raw, group.live = 0, nil, nil
	if e := m.HandBuffers(cmp.Or(sh.Row.Samples, reports.SamplesLatency), m.Out, group.kept()); err == nil {
		err = e
	}
	if err != nil {
		m.Fail(ctx)
		return err
	}
	m.Verified = sh.Verify
	if err := group.memory(ctx); err != nil {
		return err
	}
	_, err = c.Ask(ctx, sh, &engine.Message{Type: engine.MsgEnd}, engine.MsgEnded)
	return err
}

// newCallers has its histograms before it reads what is resident without connections.
func newCallers(m *engine.Measurement, groups []CallGroup) *callers {
	k := &callers{m: m, work: m.Sh.Calls()}
	for _, g := range groups {
		k.groups = append(k.groups, newCallGroup(g))
	}
	k.base = resident()
	return k
}

// timed tells whether latencies of the first group, which is the one that is measured,
// mean something.
func (k *callers) timed() bool { return !k.groups[0].Untimed }

// dialsAtOnce bounds connections being made at once, below the backlog of
// every listener.
const dialsAtOnce = 16

// cause is the first of the errors of dials that ended each other which is no end of a context:
// that one ended them. Where there is none, it is the last of the others.
func cause(errs []error) (err error) {
	for _, e := range errs {
		if e != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = e
		}
	}
	return err
}

// connect opens all connections and makes the callers.
func (k *callers) connect(ctx context.Context, tr transports.CallTransport, addr string) error {
	sh := k.m.Sh
	setup, cancel := context.WithTimeout(ctx, engine.SetupTimeout(sh)+time.Duration(sh.QPs)*10*time.Millisecond)
	defer cancel()
	unhook := context.AfterFunc(k.m.C.Ctl.Alive, cancel)
	defer unhook()
	k.conns = make([]transports.CallConn, sh.QPs)
	errs := make([]error, dialsAtOnce)
	cfg := CallConfig(sh, k.secret)
	var next atomic.Int64
	var dials sync.WaitGroup
	for i := range errs {
		dials.Go(func() {
			for n := int(next.Add(1)) - 1; n < sh.QPs && errs[i] == nil; n = int(next.Add(1)) - 1 {
				if k.conns[n], errs[i] = tr.DialCalls(setup, addr, cfg); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	dials.Wait()
	switch err := cause(errs); {
	case err != nil && ctx.Err() != nil:
		return engine.Interrupted()
	case err != nil:
		return k.m.C.Explain(callConnectFailed(tr, err))
	}
	for _, g := range k.groups {
		if err := g.hire(k); err != nil {
			return err
		}
		k.workers = append(k.workers, g.workers...)
	}
	return nil
}

func callConnectFailed(tr transports.CallTransport, err error) error {
	if tr.Caps().SameHost {
		return engine.PeerError("connect", err,
			"a server on this machine and in this network namespace: unix sockets go no further")
	}
	var exit *reports.ExitError
	if e := engine.TransportError("connect", err); !errors.As(e, &exit) || exit.Code != reports.ExitFailed ||
		exit.Hint != "" {
		return e
	}
	return engine.PeerError("connect", err, "the data path: a firewall may pass the control port only")
}

func (k *callers) close() {
	var wg sync.WaitGroup // each may wait for its peer
	for _, c := range k.conns {
		if c != nil {
			wg.Go(func() { c.Close() })
		}
	}
	wg.Wait()
}

// keep gives the callers room for the samples of the next phase. A phase that times
// nothing has none.
func (k *callers) keep() {
	for _, w := range k.workers {
		w.raw = nil
	}
	if k.raw == nil || k.lead.Untimed {
		return
	}
	for i, b := range k.raw.Share(len(k.lead.workers)) {
		k.lead.workers[i].raw = b
	}
}

// kept are the samples of the phase, caller by caller.
func (k *callers) kept() []*engine.RawBuffer {
	buffers := make([]*engine.RawBuffer, len(k.lead.workers))
	for i, w := range k.lead.workers {
		buffers[i] = w.raw
	}
	return buffers
}

// idles watches both sides while nothing is called.
func (k *callers) idles(ctx context.Context) error {
	_, rep, err := k.around(ctx, "idle", engine.GenIdle, func() *engine.Phase {
		r := &engine.Phase{Done: make(chan struct{})}
		woken := make(chan struct{})
		r.Cancel = sync.OnceFunc(func() { close(woken) })
		before := engine.ReadUsage()
		begin := engine.Now()
		go func() {
			select {
			case <-time.After(IdleWindow):
			case <-woken:
			}
			k.idleFor = time.Duration(engine.Now() - begin)
			k.idle = engine.ReadUsage().Minus(before).CPU
			close(r.Done)
		}()
		return r
	})
	if rep != nil {
		k.idleServer = time.Duration(rep.CPUSeconds * 1e9)
	}
	return err
}

// memory reads what both sides hold with all connections open and warm.
func (k *callers) memory(ctx context.Context) error {
	k.used = resident()
	_, rep, err := k.around(ctx, "memory", engine.GenMemory, func() *engine.Phase {
		r := &engine.Phase{Done: make(chan struct{}), Cancel: func() {}}
		close(r.Done)
		return r
	})
	if err == nil && rep != nil {
		k.serverUsed = rep.Resident
	}
	return err
}

// around runs something on this side inside a phase of the server.
func (k *callers) around(ctx context.Context, name string, gen int, start func() *engine.Phase) (
	*engine.Outcome, *engine.PhaseReport, error) {
	m, c, sh := k.m, k.m.C, k.m.Sh
	collectAsUsed()
	changes := engine.CountersAround(c.Counters, gen)
	if _, err := c.Ask(ctx, sh, &engine.Message{Type: engine.MsgPhase,
		Phase: &engine.PhaseStart{Name: name, Generation: gen}}, engine.MsgReady); err != nil {
		return nil, nil, err
	}
	out, err := m.Watch(ctx, start())
	if moved := changes(); moved != nil {
		m.Counters.Client = moved
	}
	if err != nil {
		return out, nil, err
	}
	fctx := ctx
	if ctx.Err() != nil { // the server is still told, so that the result has both sides
		var cancel context.CancelFunc
		fctx, cancel = context.WithTimeout(context.Background(), engine.Grace)
		defer cancel()
	}
	answer, err := c.Ask(fctx, sh, &engine.Message{Type: engine.MsgStop, Stop: &engine.PhaseStop{Check: sh.Verify}},
		engine.MsgReport)
	if err != nil {
		return out, nil, err
	}
	if ctx.Err() != nil {
		return out, answer.Report, engine.Interrupted()
	}
	return out, answer.Report, nil
}

func (k *callers) phase(ctx context.Context, name string, gen int, lim engine.Limits, who CallPhase) (
	*engine.Outcome, *engine.PhaseReport, error) {
	k.lead, k.beside = k.groups[who.Lead], nil
	if who.Beside > 0 {
		k.beside = k.groups[who.Beside]
	}
	return k.around(ctx, name, gen, func() *engine.Phase { return k.start(gen, lim) })
}

// failed is the error of a caller, which it names.
func (w *callWorker) failed(err error) error {
	if sh := w.k.m.Sh; sh.QPs > 1 {
		err = fmt.Errorf("connection %d: %w", w.conn, err)
	}
	return CallFailed(w.k.m.Sh, err)
}
