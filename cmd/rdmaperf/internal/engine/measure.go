package engine

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Measurement is one point in progress on the client.
type Measurement struct {
	C     *Client
	Sh    *Shape
	Group *Group

	Warm     *Outcome
	Out      *Outcome // of the measured phase
	Report   *PhaseReport
	Verified bool
	failures int64

	samples []reports.RawSamples

	Private any // what the row keeps with it, of its own type

	clientNoise, serverNoise noise
	started                  time.Time // the measured window

	compared compared // in the measured phase, by both sides
	Counters reports.Counters
}

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

// Grace bounds what an interrupted run still says to the server.
const Grace = 3 * time.Second

// Run takes the point through its phases.
func (m *Measurement) Run(ctx context.Context) (err error) {
	c, sh := m.C, m.Sh
	w := sh.work()
	if w.Run != nil {
		return w.Run(m, ctx)
	}
	if m.Group, err = c.gather(ctx, sh); err != nil {
		return err
	}
	defer func() {
		if e := m.Group.Close(); err == nil && e != nil {
			err = Failed(sh.String(), e)
		}
	}()
	if w.Warm != nil {
		w.Warm(m)
	}
	p := &c.Plan
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.Warm, _, err = m.Phase(ctx, "warm-up", GenWarmup, Limits{p.WarmupIterations, p.WarmupDuration}); err != nil {
			return err
		}
	}
	if w.Before != nil {
		if err := w.Before(m, ctx); err != nil {
			m.Fail(ctx)
			return err
		}
	}
	var rep *PhaseReport
	m.Group.interval, m.Group.Raw, m.Group.live = p.Interval, c.Raw, c.Live
	m.Out, rep, err = m.Phase(ctx, "measure", GenMeasure, Limits{p.Iterations, p.Duration})
	if rep != nil {
		m.Report = rep
	}
	m.Group.interval, m.Group.live = 0, nil
	if w.Keep != nil && m.Out != nil && m.Out.Rec != nil {
		w.Keep(m)
	}
	if e := m.HandSamples(cmp.Or(w.Samples, reports.SamplesLatency), m.Out); err == nil {
		err = e
	}
	if err != nil {
		m.Fail(ctx)
		return err
	}
	if sh.Verify && w.Again {
		// In the window a slot carries the same bytes every time, so a later write
		// that got lost there leaves no trace. One more round with another pattern
		// does.
		if w.Prove != nil {
			w.Prove(m)
		}
		if _, _, err = m.Phase(ctx, "verify", GenVerify, Limits{Ops: int64(sh.Slots)}); err != nil {
			m.Fail(ctx)
			return err
		}
	}
	m.Verified = sh.Verify
	_, err = c.Ask(ctx, sh, &Message{Type: MsgEnd}, MsgEnded)
	return err
}

// Fail counts an error of the point; an interrupt is none.
func (m *Measurement) Fail(ctx context.Context) {
	if ctx.Err() == nil {
		m.failures++
	}
}

// Phase runs one phase on both sides. An outcome comes with an error when
// something was measured before it.
func (m *Measurement) Phase(ctx context.Context, name string, gen int, lim Limits) (*Outcome, *PhaseReport, error) {
	c, sh := m.C, m.Sh
	if err := m.Group.Side.Prepare(gen); err != nil {
		return nil, nil, err
	}
	release := HoldCollector()
	defer release()
	changes := CountersAround(c.Counters, gen)
	if _, err := c.Ask(ctx, sh, &Message{Type: MsgPhase, Phase: &PhaseStart{Name: name, Generation: gen, Operations: lim.Ops}}, MsgReady); err != nil {
		return nil, nil, err
	}
	if gen == GenMeasure {
		m.started = time.Now()
	}
	out, err := m.Watch(ctx, m.Group.Start(lim, !sh.streaming()))
	if moved := changes(); moved != nil {
		m.Counters.Client = moved
	}
	if err != nil {
		return out, nil, err
	}
	// After an interrupt the server is still told in order, so that the partial
	// result has both sides' figures.
	fctx := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		fctx, cancel = context.WithTimeout(context.Background(), Grace)
		defer cancel()
	}
	stop := &PhaseStop{Check: sh.Verify, Lanes: m.Group.Side.Counts()}
	answer, err := c.Ask(fctx, sh, &Message{Type: MsgStop, Stop: stop}, MsgReport)
	if err != nil {
		return out, nil, err
	}
	if answer.Report == nil {
		return out, nil, PeerError(sh.String(), outOfTurn(answer, MsgReport), "")
	}
	if sh.Verify {
		if err := m.Group.Side.Verify(gen, answer.Report.Lanes); err != nil {
			return out, answer.Report, err
		}
	}
	switch gen {
	case GenMeasure, GenAlone, GenBulk:
		m.clientNoise.add(out.Noise, out.Window)
		if n := answer.Report.Noise; n != nil {
			m.serverNoise.add(*n, out.Window)
		}
	}
	if looked := m.Group.takeCompared(); gen == GenMeasure {
		m.compared = looked
		m.compared.add(answer.Report.Compared)
	}
	if ctx.Err() != nil {
		return out, answer.Report, Interrupted()
	}
	return out, answer.Report, nil
}

// Watch waits for the workers, and ends them when the run is interrupted or the
// server goes away.
func (m *Measurement) Watch(ctx context.Context, r *Phase) (*Outcome, error) {
	interrupt := ctx.Done()
	for {
		select {
		case <-r.Done:
			out := r.Wait()
			if out.Err != nil {
				return out, m.C.Explain(out.Err)
			}
			return out, nil
		case <-interrupt:
			r.Halt(StopSoon)
			interrupt = nil
		case msg, ok := <-m.C.Ctl.in:
			r.Halt(StopNow)
			out := r.Wait()
			switch {
			case out.Err != nil && reports.Code(out.Err) == reports.ExitCorruption:
				return out, out.Err
			case !ok:
				return out, PeerError(m.Sh.String(), lossCause(m.C.Ctl.err), "the server's log, then the same command again")
			case msg.Type == MsgError && msg.Error != nil:
				return out, msg.Error.AsError(m.C.Ctl.peer)
			}
			return out, PeerError(m.Sh.String(), outOfTurn(msg, MsgReport), "")
		}
	}
}

// Result is what the document says about the point.
func (m *Measurement) Result() reports.Result {
	c, sh := m.C, m.Sh
	res := reports.Result{
		Stack: c.Tr.Name(), Transport: c.Plan.Transport, Label: string(c.Tr.Caps().Label),
		Workload: sh.Workload, Kind: sh.work().Kind,
		Op: sh.Op, SizeBytes: int64(sh.Size), Depth: sh.Depth, QPs: sh.QPs, Threads: sh.Threads,
		Polling: sh.Polling, MeasuredBy: SideClient, Errors: m.failures, Verified: m.Verified,
		Parameters: m.parameters(),
	}
	res.AppWorkNs = int64(sh.AppWork)
	if sh.Rate > 0 {
		res.Rate, res.Arrivals = sh.Rate, c.Plan.Arrivals
	}
	if res.Transport == "" {
		res.Transport = c.Tr.Name()
	}
	if ways := sh.work().RoundTrip; ways != nil {
		res.RoundTrip = ways(sh)
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
		m.clientNoise.add(out.Noise, out.Window)
	}
	res.Verification, res.Disturbance = m.verification(out.Ops), m.disturbed()
	res.RawSamples = m.samples
	if r := m.Report; r != nil {
		m.Counters.Server = r.Counters
	}
	if m.Counters.Client != nil || m.Counters.Server != nil {
		res.Counters = &m.Counters
	}
	if out.Series != nil {
		res.Series = out.Series.report()
	}
	res.CPU = &reports.CPU{ClientSeconds: out.Usage.CPU.Seconds(), MachineSeconds: out.Usage.machine.Seconds()}
	res.GC = &reports.GC{ClientCollections: out.Usage.Collections, ClientAllocations: out.Usage.Allocations}
	if r := m.Report; r != nil {
		res.CPU.ServerSeconds = r.CPUSeconds
		res.GC.ServerCollections, res.GC.ServerAllocations = r.Collections, r.Allocations
	}
	sh.work().Result(m, &res, out)
	res.Contradict()
	return res
}

// parameters are the effective options of both sides.
func (m *Measurement) parameters() map[string]any {
	c, sh := m.C, m.Sh
	if own := sh.work().AllParameters; own != nil {
		return own(m)
	}
	p := map[string]any{
		"arrival": sh.Arrival, "target": sh.target(), "verify": sh.Verify, "seed": sh.Seed,
		"recv_depth": sh.RecvDepth, "inline_bytes": sh.Inline, "completion_every": sh.Moderation,
		"window_bytes": sh.Window(), "slots": sh.Slots, "timeout_ns": int64(sh.Timeout),
		"completion": "ack", "clock": "CLOCK_MONOTONIC", "gc": "off in the window, memory limit 1 GiB",
		"warmup_iterations": c.Plan.WarmupIterations, "warmup_ns": int64(c.Plan.WarmupDuration),
		"client": map[string]any{"stack": c.Tr.Name(), "cpu": m.pinned(), "gomaxprocs": runtime.GOMAXPROCS(0)},
	}
	if c.Tr.Caps().LocalComplete {
		p["completion"] = "local"
	}
	if c.Plan.Iterations > 0 {
		p["iterations"] = c.Plan.Iterations
	} else {
		p["duration_ns"] = int64(c.Plan.Duration)
	}
	if sh.PostList > 0 {
		p["post_list"] = sh.PostList
	}
	if sh.ImmAlone {
		p["message"] = "the immediate alone, without bytes of memory"
	}
	if sh.ReadDepth > 0 {
		p["read_depth"] = sh.ReadDepth
	}
	if sh.Sleeps(SideServer) {
		p["target_naps"] = "where its device needs no polls: at most 500 us and a 64th of half of its receives, and 200 us at a time while others take its CPU"
	}
	if sh.Nice > 0 {
		p["worker_nice"] = sh.Nice
	}
	if m.Group != nil && m.Group.Workers[0].Sleeps {
		p["client_naps"] = "at most 500 us and a 64th of what is outstanding, while nothing completes"
	}
	if m.Group != nil && m.Group.Workers[0].demotes {
		p["other_threads"] = "SCHED_BATCH and, where allowed, 20 ms of timer slack in the window"
	}
	if m.Warm != nil {
		p["warmup_operations"] = m.Warm.Ops
	}
	if c.Raw != nil {
		p["raw_limit"] = c.Raw.Limit
	}
	if sh.Rate > 0 {
		p["rate"], p["arrivals"] = sh.Rate, c.Plan.Arrivals
	}
	if sh.work().Parameters != nil {
		sh.work().Parameters(m, p)
	}
	if c.Tr.Caps().InProcess {
		p["note"] = "both sides in one process: not a network, and client CPU covers both"
	}
	p["server"] = m.ServerParameters()
	return p
}

// Barrier says what ends a window.
func (sh *Shape) Barrier(p map[string]any) {
	p["barrier"] = "answer to an empty send"
	if sh.Arrival == ArrivalCompletion {
		p["barrier"] = "last completion"
	}
}

func (m *Measurement) ServerParameters() map[string]any {
	server := map[string]any{"stack": m.C.server.Stack, "cpu": "none"}
	if r := m.Report; r != nil {
		server["operations"], server["gomaxprocs"], server["clients"] = r.Operations, r.Procs, r.Sessions
		if r.Pinned {
			server["cpu"] = m.C.Plan.ServerCPU
		}
	}
	return server
}

func (m *Measurement) pinned() any {
	if m.Group != nil && m.Group.Workers[0].pinned {
		return m.C.Plan.ClientCPU
	}
	return "none"
}
