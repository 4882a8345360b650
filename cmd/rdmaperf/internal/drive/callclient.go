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

// Calls is the client's side of a point: its connections, and the goroutines that call on them.
type Calls struct {
	*engine.Measurement
	conns   []transports.CallConn
	closing sync.Once // of conns
	groups  []*callGroup
	workers []*callWorker // of all groups
	cfg     transports.CallConfig
	// Resident memory of both sides before the connections and behind the work, bytes.
	base, used, serverBase, serverUsed int64
	// Processor time of both sides while nothing was called; idleFor is 0 until then.
	idle, idleServer, idleFor time.Duration
	read                      bool       // what is resident
	lead, beside              *callGroup // of the phase: who is measured, and who calls until they have ended (or nil)

	interval time.Duration    // of a series over the next phase, 0 for none
	live     *engine.Live     // follows the next phase, nil for nobody
	raw      *engine.RawStore // for the samples of the next phase, nil for none
}

// Callers are those of a point whose callers all do the same thing.
func Callers(sh *engine.Shape, untimed bool, make func(transports.CallConn, int) (engine.Caller, error)) CallGroup {
	return CallGroup{Conns: sh.QPs, Each: sh.Depth, Untimed: untimed, Rate: sh.Rate, New: make}
}

// ConnectCalls opens the connections of a point and makes its callers, of which the first group is measured. Any number
// of phases may be run until Close.
func ConnectCalls(ctx context.Context, r *engine.Run, sh *engine.Shape, cfg transports.CallConfig,
	groups ...CallGroup) (*Calls, error) {
	m, err := r.Measurement(sh)
	if err != nil {
		return nil, err
	}
	tr, err := engine.CallsOf(r.Stack)
	if err != nil {
		return nil, err
	}
	if raw := m.Raw(); raw != nil { // in every reading of what is resident, like the histograms
		most := 0
		for _, g := range groups {
			most = max(most, g.Conns*g.Each)
		}
		raw.Share(most)
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return nil, err
	}
	k := &Calls{Measurement: m, serverBase: at.Resident, cfg: cfg}
	for _, g := range groups { // histograms count as resident without connections
		k.groups = append(k.groups, newCallGroup(g))
	}
	k.base = resident()
	k.cfg.Secret = m.Secret(at.Token)
	if err := k.connect(ctx, tr, addr); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// Warmed runs the warm-up, if the plan has one, and in the first slice watches both sides idle behind it.
func (k *Calls) Warmed(ctx context.Context, who CallPhase) error {
	if l := k.WarmUp(); l != (engine.Limits{}) {
		out, _, err := k.phase(ctx, "warm-up", engine.GenWarmup, l, who)
		if k.First() {
			k.Warm = out
		}
		if err != nil {
			return err
		}
	}
	if !k.First() {
		return nil
	}
	return k.idles(ctx)
}

// Ahead runs a phase before the measured one, whose raw samples get this name; "": they are not kept. The outcome is
// valid until the next phase.
func (k *Calls) Ahead(ctx context.Context, name string, gen int, samples string, who CallPhase) (*engine.Outcome,
	error) {
	if samples != "" {
		k.raw = k.Raw()
	}
	out, _, err := k.phase(ctx, name, gen, k.Window(), who)
	k.raw = nil
	if err != nil || samples == "" {
		return out, err
	}
	return out, k.HandBuffers(samples, out, k.kept())
}

// Measure runs the measured phase, whose raw samples get this name.
func (k *Calls) Measure(ctx context.Context, samples string, who CallPhase) (err error) {
	k.interval, k.raw, k.live = k.Plan.Interval, k.Raw(), k.Live
	k.Out, k.Report, err = k.phase(ctx, "measure", engine.GenMeasure, k.Measured(), who)
	k.interval, k.raw, k.live = 0, nil, nil
	err = cmp.Or(err, k.HandBuffers(samples, k.Out, k.kept()))
	k.Judge(err)
	return err
}

// Run is a point whose callers all do the same thing: warm-up and measured phase.
func (k *Calls) Run(ctx context.Context) error {
	err := k.Warmed(ctx, CallPhase{})
	if err == nil {
		err = k.Measure(ctx, reports.SamplesLatency, CallPhase{})
	}
	return k.Resident(ctx, err)
}

// Resident reads once what both sides hold with all connections open and warm, unless the slice failed with err.
func (k *Calls) Resident(ctx context.Context, err error) error {
	if err == nil && !k.read {
		k.read, err = true, k.memory(ctx)
	}
	return err
}

// Close ends the point with the server, unless it failed with err, and then the connections.
func (k *Calls) Close(ctx context.Context, err error) error {
	err = k.End(ctx, k.Resident(ctx, err))
	k.close()
	return err
}

// dialsAtOnce is below the backlog of every listener.
const dialsAtOnce = 16

// cause is the first error of dials that is no end of a context, as that one ended the others; else the last.
func cause(errs []error) (err error) {
	for _, e := range errs {
		if e != nil && (err == nil || errors.Is(err, context.Canceled)) {
			err = e
		}
	}
	return err
}

func (k *Calls) connect(ctx context.Context, tr transports.CallTransport, addr string) error {
	sh := k.Sh
	setup, cancel := context.WithTimeout(ctx, engine.SetupTimeout(sh)+time.Duration(sh.QPs)*10*time.Millisecond)
	defer cancel()
	k.conns = make([]transports.CallConn, sh.QPs)
	errs := make([]error, dialsAtOnce)
	var next atomic.Int64
	var dials sync.WaitGroup
	for i := range errs {
		dials.Go(func() {
			for n := int(next.Add(1)) - 1; n < sh.QPs && errs[i] == nil; n = int(next.Add(1)) - 1 {
				if k.conns[n], errs[i] = tr.DialCalls(setup, addr, k.cfg); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	dials.Wait()
	switch err := cause(errs); {
	case err != nil && engine.WasInterrupted(ctx):
		return engine.Interrupted()
	case err != nil:
		return k.Explain(ConnectFailed(tr, err))
	}
	for _, g := range k.groups {
		if err := g.hire(k); err != nil {
			return err
		}
		k.workers = append(k.workers, g.workers...)
	}
	return nil
}

// ConnectFailed is the error of a connection of calls that was not made: the peer's, where this side has no cause.
func ConnectFailed(tr transports.CallTransport, err error) error {
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

func (k *Calls) close() {
	k.closing.Do(func() {
		var wg sync.WaitGroup // each may wait for its peer
		for _, c := range k.conns {
			if c != nil {
				wg.Go(func() { c.Close() })
			}
		}
		wg.Wait()
	})
}

// keep gives the callers room for the samples of the next phase. A phase that times nothing has none.
func (k *Calls) keep() {
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

func (k *Calls) kept() []*engine.RawBuffer {
	buffers := make([]*engine.RawBuffer, len(k.lead.workers))
	for i, w := range k.lead.workers {
		buffers[i] = w.raw
	}
	return buffers
}

func (k *Calls) idles(ctx context.Context) error {
	out, rep, err := k.around(ctx, engine.PhaseStart{Name: "idle", Generation: engine.GenIdle}, func() *engine.Phase {
		begin := engine.Now()
		return waiting(func(halted <-chan struct{}) error {
			select {
			case <-time.After(IdleWindow):
			case <-halted:
			}
			k.idleFor = time.Duration(engine.Now() - begin)
			return nil
		})
	})
	if out != nil {
		k.idle = out.Usage.CPU
	}
	if rep != nil {
		k.idleServer = time.Duration(rep.CPUSeconds * 1e9)
	}
	return err
}

// waiting is a phase in which this side does nothing until wait returns; halted says that it is to.
func waiting(wait func(halted <-chan struct{}) error) *engine.Phase {
	halted := make(chan struct{})
	r := &engine.Phase{Done: make(chan struct{}), Cancel: sync.OnceFunc(func() { close(halted) })}
	before := engine.ReadUsage()
	go func() {
		defer close(r.Done)
		r.Out.Err = wait(halted)
		r.Out.Usage = engine.ReadUsage().Minus(before)
	}()
	return r
}

func (k *Calls) memory(ctx context.Context) error {
	k.used = resident()
	_, rep, err := k.around(ctx, engine.PhaseStart{Name: "memory", Generation: engine.GenMemory}, func() *engine.Phase {
		return waiting(func(<-chan struct{}) error { return nil })
	})
	if err == nil && rep != nil {
		k.serverUsed = rep.Resident
	}
	return err
}

func (k *Calls) around(ctx context.Context, ph engine.PhaseStart, start func() *engine.Phase) (*engine.Outcome,
	*engine.PhaseReport, error) {
	collectAsUsed()
	return k.Around(ctx, ph, start, nil)
}

func (k *Calls) phase(ctx context.Context, name string, gen int, lim engine.Limits, who CallPhase) (*engine.Outcome,
	*engine.PhaseReport, error) {
	k.lead, k.beside = k.groups[who.Lead], nil
	if who.Beside > 0 {
		k.beside = k.groups[who.Beside]
	}
	return k.around(ctx, engine.PhaseStart{Name: name, Generation: gen}, func() *engine.Phase {
		return k.start(gen, lim)
	})
}

func (w *callWorker) failed(err error) error {
	if sh := w.k.Sh; sh.QPs > 1 {
		err = fmt.Errorf("connection %d: %w", w.conn, err)
	}
	return CallFailed(w.k.Sh, err)
}
