package engine

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Measurement is one point in progress on the client. It belongs to one goroutine.
type Measurement struct {
	Sh       *Shape
	Plan     *Plan
	Stack    transports.Stack
	Group    *Group // of sessions; nil of calls
	Live     *Live  // follows the measured phase; nil for nobody
	Warm     *Outcome
	Out      *Outcome // of the measured phase
	Report   *PhaseReport
	Verified bool

	r                        *Run
	failures                 int64
	interrupted              bool
	samples                  []reports.RawSamples
	clientNoise, serverNoise noise
	others                   reports.Others // in the same windows
	started                  time.Time      // the measured window
	compared                 Compared       // in the measured phase, by both sides
	counters                 reports.Counters
}

// Measurement begins a point of this shape, if it fits on both machines.
func (r *Run) Measurement(sh *Shape) (*Measurement, error) {
	r.finish(sh)
	if err := checkWindow(sh.Point, sh.QPs, sh.TotalWindow(), r.client.server.MaxWindow); err != nil {
		return nil, err
	}
	if err := checkMemory(sh.String(), r.client.here(sh)); err != nil {
		return nil, err
	}
	return &Measurement{Sh: sh, Plan: r.Plan, Stack: r.Stack, Live: r.client.Live, r: r}, nil
}

// Raw is where raw samples are kept, nil where nobody asked for them.
func (m *Measurement) Raw() *RawStore { return m.r.client.Raw }

// Secret is what connections show to a server that gave this number for them.
func (m *Measurement) Secret(number []byte) []byte { return m.Plan.Secret(number) }

// Generations of the patterns, one per phase.
const (
	GenWarmup = 1 + iota
	GenMeasure
	GenVerify
	GenAlone // head-of-line: probes alone, and then bulk alone
	GenBulk
	GenIdle   // calls: nothing is called
	GenMemory // calls: what is resident
)

const Grace = 3 * time.Second

// Again ends a slice that ended with err, and waits for the next: see [Run.Again]. True: it has the same sessions.
func (m *Measurement) Again(err error) bool {
	if err != nil {
		return false
	}
	if m.Group != nil { // the workers of the other stacks reserve their own
		m.Group.release()
		defer func() { m.Group.release = ReserveProcs(len(m.Group.Workers)) }()
	}
	if !m.r.Again() {
		return false
	}
	*m = Measurement{Sh: m.Sh, Plan: m.Plan, Stack: m.Stack, Group: m.Group, Live: m.r.client.Live, Warm: m.Warm,
		r: m.r}
	return true
}

// First is whether this is the first slice of the point.
func (m *Measurement) First() bool { return m.r.slice == 0 }

// WarmUp limits the warm-up of a slice. Behind the first slice only caches are cold, and a tenth is enough.
func (m *Measurement) WarmUp() Limits {
	l := Limits{m.Plan.WarmupIterations, m.Plan.WarmupDuration}
	if !m.First() {
		l = Limits{(l.Ops + 9) / 10, l.Dur / 10}
	}
	return l
}

// Warmed runs the warm-up, if the plan has one.
func (m *Measurement) Warmed(ctx context.Context) (err error) {
	if l := m.WarmUp(); l != (Limits{}) {
		var out *Outcome
		if out, _, err = m.Phase(ctx, "warm-up", GenWarmup, l); m.First() {
			m.Warm = out
		}
	}
	return err
}

// Window is the limit of a measured phase.
func (m *Measurement) Window() Limits { return Limits{m.Plan.Iterations, m.Plan.Duration} }

// Measured is the limit of the phase that is the result: of Window, or longer where a slice has few samples.
func (m *Measurement) Measured() Limits {
	l := m.Window()
	if s := m.r.client.Slice; l.Dur > 0 && s > 0 {
		l.Dur = s
	}
	return l
}

// Measure runs the measured phase, whose raw samples get this name. Out and Report are also valid beside an error.
func (m *Measurement) Measure(ctx context.Context, samples string) (err error) {
	m.Group.interval, m.Group.Raw, m.Group.live = m.Plan.Interval, m.Raw(), m.Live
	m.Out, m.Report, err = m.Phase(ctx, "measure", GenMeasure, m.Measured())
	m.Group.interval, m.Group.live = 0, nil
	err = cmp.Or(err, m.HandSamples(samples, m.Out))
	m.Judge(err)
	return err
}

// Judge notes whether what was compared was right. An interrupt says nothing against it.
func (m *Measurement) Judge(err error) {
	m.interrupted = errors.Is(err, ErrInterrupted)
	m.Verified = m.Sh.Verify && (err == nil || m.interrupted)
}

// Prove runs one more phase with another pattern, in the first and the last slice. In the window a slot carries the
// same bytes every time, so a later write that got lost leaves no trace.
func (m *Measurement) Prove(ctx context.Context) error {
	if m.Sh.Verify && (m.First() || m.r.slice+1 >= m.Plan.Rounds) {
		if _, _, err := m.Phase(ctx, "verify", GenVerify, Limits{Ops: int64(m.Sh.Slots)}); err != nil {
			m.Judge(err)
			return err
		}
	}
	return nil
}

func (m *Measurement) ask(ctx context.Context, v, answer any) error {
	if err := m.r.Peer.Send(v); err != nil {
		return err
	}
	return m.receive(ctx, answer)
}

func (m *Measurement) receive(ctx context.Context, answer any) error {
	err := m.r.Peer.within(ctx, SetupTimeout(m.Sh), answer)
	if err != nil && WasInterrupted(ctx) {
		return Interrupted()
	}
	return err
}

// Explain prefers the server's account of a failure: see [Client.Explain].
func (m *Measurement) Explain(err error) error { return m.r.client.Explain(err) }

// Phase runs one phase of sessions on both sides. An outcome beside an error is what was measured before it.
func (m *Measurement) Phase(ctx context.Context, name string, gen int, lim Limits) (*Outcome, *PhaseReport, error) {
	side := m.Group.Side
	if err := side.Prepare(gen); err != nil {
		return nil, nil, err
	}
	release := HoldCollector()
	defer release()
	out, report, err := m.Around(ctx, PhaseStart{Name: name, Generation: gen, Operations: lim.Ops},
		func() *Phase { return m.Group.Start(lim, !m.Sh.Counted) }, side.Counts)
	if report == nil {
		return out, nil, err
	}
	if m.Sh.Verify {
		if e := side.Verify(gen, report.Lanes); e != nil {
			m.fail(ctx, gen, e)
			return out, report, e
		}
	}
	switch gen {
	case GenMeasure, GenAlone, GenBulk:
		m.disturbedBy(out, report)
		if n := report.Noise; n != nil {
			m.serverNoise.add(*n, out.Window)
		}
	}
	if compared := m.Group.takeCompared(); gen == GenMeasure {
		m.compared = compared
		m.compared.add(report.Compared)
	}
	return out, report, err
}

func (m *Measurement) fail(ctx context.Context, gen int, err error) {
	if err != nil && gen > GenWarmup && gen < GenIdle && !WasInterrupted(ctx) {
		m.failures++
	}
}

// Around runs start inside a phase of the server. counts, if not nil, are what this side sent by then.
func (m *Measurement) Around(ctx context.Context, ph PhaseStart, start func() *Phase,
	counts func() []LaneCount) (out *Outcome, report *PhaseReport, err error) {
	defer func() { m.fail(ctx, ph.Generation, err) }()
	changes := CountersAround(m.r.client.Counters, ph.Generation)
	if err := m.ask(ctx, &ph, new(Ready)); err != nil {
		return nil, nil, err
	}
	if ph.Generation == GenMeasure && m.Group != nil {
		m.started = time.Now()
	}
	out, err = m.watch(ctx, start())
	if moved := changes(); moved != nil {
		m.counters.Client = moved
	}
	if err != nil {
		return out, nil, err
	}
	// After an interrupt the partial result still has both sides' figures.
	last := ctx
	if WasInterrupted(ctx) {
		var cancel context.CancelFunc
		last, cancel = context.WithTimeout(context.Background(), Grace)
		defer cancel()
	}
	stop := &PhaseStop{Check: m.Sh.Verify}
	if counts != nil {
		stop.Lanes = counts()
	}
	report = new(PhaseReport)
	if err := m.ask(last, stop, report); err != nil {
		return out, nil, err
	}
	if WasInterrupted(ctx) {
		return out, report, Interrupted()
	}
	return out, report, nil
}

func (m *Measurement) watch(ctx context.Context, r *Phase) (*Outcome, error) {
	interrupt, in := ctx.Done(), m.r.Peer.ctl.in
	for {
		select {
		case <-r.Done:
			out := r.Wait()
			if out.Err != nil {
				return out, m.Explain(out.Err)
			}
			return out, nil
		case <-interrupt:
			if WasInterrupted(ctx) {
				r.Halt(StopSoon)
			}
			interrupt = nil
		case msg, ok := <-in:
			r.Halt(StopNow)
			out := r.Wait()
			switch {
			case out.Err != nil && reports.Code(out.Err) == reports.ExitCorruption:
				return out, out.Err
			case !ok:
				return out, PeerError(m.Sh.String(), lossCause(m.r.Peer.ctl.err),
					"the server's log, then the same command again")
			case msg.Type == MsgError && msg.Error != nil:
				return out, msg.Error.AsError(m.r.Peer.ctl.peer)
			}
			return out, PeerError(m.Sh.String(), outOfTurn(msg, msgData), "")
		}
	}
}

// Result is what the document says about the point, but for what the workload adds.
func (m *Measurement) Result() reports.Result {
	sh := m.Sh
	res := m.r.Result()
	res.Depth, res.QPs, res.Threads, res.Polling = sh.Depth, sh.QPs, sh.Threads, sh.Polling
	res.Errors, res.Verified, res.Parameters = m.failures, m.Verified, m.parameters()
	res.Interrupted = m.interrupted
	res.AppWorkNs = int64(sh.AppWork)
	if sh.Rate > 0 {
		res.Rate, res.Arrivals = sh.Rate, m.Plan.Arrivals
	}
	out := m.Out
	if out == nil {
		return res
	}
	res.Operations, res.DurationNs = out.Ops, int64(out.Window)
	if m.started.IsZero() { // of calls, whose window has just ended
		m.started = time.Now().Add(-out.Window)
	}
	res.Started = m.started.UTC()
	if m.clientNoise.window == 0 { // of calls, or cut short
		m.disturbedBy(out, m.Report)
	}
	res.Verification, res.Disturbance = m.Sh.Verification(m.compared, out.Ops), m.disturbed()
	res.RawSamples = m.samples
	res.CPU = &reports.CPU{ClientSeconds: out.Usage.CPU.Seconds(), MachineSeconds: out.Usage.machine.Seconds(),
		ClientSwitches: out.Usage.switches}
	res.GC = &reports.GC{ClientCollections: out.Usage.Collections, ClientAllocations: out.Usage.Allocations}
	if r := m.Report; r != nil {
		res.CPU.ServerSeconds, res.CPU.ServerSwitches = r.CPUSeconds, r.Switches
		res.GC.ServerCollections, res.GC.ServerAllocations = r.Collections, r.Allocations
		m.counters.Server = r.Counters
	}
	if m.counters.Client != nil || m.counters.Server != nil {
		res.Counters = &m.counters
	}
	if out.Series != nil {
		res.Series = out.Series.report()
	}
	return res
}

func (m *Measurement) parameters() map[string]any {
	sh, caps := m.Sh, m.Stack.Caps()
	p := m.Parameters("off in the window, memory limit 1 GiB", m.pinned())
	p["arrival"], p["target"] = sh.Arrival, sh.target()
	p["recv_depth"], p["inline_bytes"], p["completion_every"] = sh.RecvDepth, sh.Inline, sh.Moderation
	p["window_bytes"], p["slots"], p["completion"] = sh.Window(), sh.Slots, "ack"
	first := new(Worker)
	if m.Group != nil {
		first = m.Group.Workers[0]
	}
	for _, more := range []struct {
		there bool
		name  string
		value any
	}{
		{caps.LocalComplete, "completion", "local"},
		{sh.PostList > 0, "post_list", sh.PostList},
		{sh.ImmAlone, "message", "the immediate alone, without bytes of memory"},
		{sh.ReadDepth > 0, "read_depth", sh.ReadDepth},
		{sh.ServerNaps, "target_naps", "where its device needs no polls: at most 500 us and a 64th of half of its " +
			"receives, and 200 us at a time while others take its CPU"},
		{sh.Nice > 0, "worker_nice", sh.Nice},
		{first.Sleeps, "client_naps", "at most 500 us and a 64th of what is outstanding, while nothing completes"},
		{first.demotes, "other_threads", "SCHED_BATCH and, where allowed, 20 ms of timer slack in the window"},
		{caps.InProcess, "note", "both sides in one process: not a network, and client CPU covers both"},
	} {
		if more.there {
			p[more.name] = more.value
		}
	}
	return p
}

// Parameters are those of sessions and of calls: when garbage is collected, and where the client's thread is pinned.
func (m *Measurement) Parameters(collector string, cpu any) map[string]any {
	sh := m.Sh
	p := map[string]any{"verify": sh.Verify, "seed": sh.Seed, "timeout_ns": int64(sh.Timeout),
		"clock": "CLOCK_MONOTONIC", "gc": collector,
		"client": map[string]any{"stack": m.Stack.Name(), "cpu": cpu, "gomaxprocs": runtime.GOMAXPROCS(0)}}
	m.Plan.lasts(p)
	if m.Warm != nil {
		p["warmup_operations"] = m.Warm.Ops
	}
	if raw := m.Raw(); raw != nil {
		p["raw_limit"] = raw.Limit
	}
	if sh.Rate > 0 {
		p["rate"], p["arrivals"] = sh.Rate, m.Plan.Arrivals
	}
	server := map[string]any{"stack": m.r.client.server.Stack, "cpu": "none"}
	if r := m.Report; r != nil {
		server["operations"], server["gomaxprocs"], server["clients"] = r.Operations, r.Procs, r.Sessions
		if r.Pinned {
			server["cpu"] = m.Plan.ServerCPU
		}
	}
	p["server"] = server
	return p
}

// Barrier says what ends a window.
func (sh *Shape) Barrier(p map[string]any) {
	p["barrier"] = "answer to an empty send"
	if sh.Arrival == ArrivalCompletion {
		p["barrier"] = "last completion"
	}
}

func (m *Measurement) pinned() any {
	if m.Group != nil && m.Group.Workers[0].pinned {
		return m.Plan.ClientCPU
	}
	return "none"
}
