package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// measurement is one point in progress on the client.
type measurement struct {
	c    *Client
	sh   *Shape
	crew *crew

	warm     *outcome
	out      *outcome // of the measured phase
	report   *phaseReport
	verified bool
	failures int64

	hol    holFigures
	train  training // of the measured phase
	rounds reports.Latency

	capacity float64 // starvation: bytes a second of one class alone
	samples  []reports.RawSamples

	callers *callCrew // of a workload of calls

	counters reports.Counters
}

// Generations of the patterns, one per phase.
const (
	genWarmup = 1 + iota
	genMeasure
	genVerify
	genAlone // head-of-line: probes alone, and then bulk alone
	genBulk
	genIdle   // calls: nothing is called
	genMemory // calls: what is resident
)

// grace bounds what an interrupted run still says to the server.
const grace = 3 * time.Second

// run takes the point through its phases.
func (m *measurement) run(ctx context.Context) (err error) {
	c, sh := m.c, m.sh
	if sh.Workload == WorkloadConnect {
		return m.runConnect(ctx)
	}
	if sh.calls() != nil {
		return m.runCalls(ctx)
	}
	if m.crew, err = c.gather(ctx, sh); err != nil {
		return err
	}
	defer func() {
		if e := m.crew.close(); err == nil && e != nil {
			err = failed(sh.Point.String(), e)
		}
	}()
	m.setPace()
	m.crew.classes = classes{low: true, high: true} // of the warm-up
	m.crew.pacers(c.plan.Arrivals)
	p := &c.plan
	if p.WarmupIterations > 0 || p.WarmupDuration > 0 {
		if m.warm, _, err = m.phase(ctx, "warm-up", genWarmup, limits{p.WarmupIterations, p.WarmupDuration}); err != nil {
			return err
		}
	}
	if sh.Workload == WorkloadHOL {
		if err := m.runAlone(ctx); err != nil {
			m.fail(ctx)
			return err
		}
	}
	if sh.Workload == WorkloadParamServer {
		if err := m.runCommunication(ctx); err != nil {
			m.fail(ctx)
			return err
		}
	}
	if sh.Workload == WorkloadStarvation {
		if err := m.runCapacity(ctx); err != nil {
			m.fail(ctx)
			return err
		}
	}
	var rep *phaseReport
	m.crew.interval, m.crew.raw = p.Interval, c.raw
	m.out, rep, err = m.phase(ctx, "measure", genMeasure, limits{p.Iterations, p.Duration})
	if rep != nil {
		m.report = rep
	}
	m.crew.interval = 0
	m.keepLoaded()
	set := reports.SamplesLatency
	if sh.Workload == WorkloadHOL {
		set = reports.SamplesProbeLoaded
	}
	if e := m.handSamples(set, m.out); err == nil {
		err = e
	}
	if err != nil {
		m.fail(ctx)
		return err
	}
	if sh.Verify && sh.Workload != WorkloadLatency {
		// In the window a slot carries the same bytes every time, so a later write
		// that got lost there leaves no trace. One more round with another pattern
		// does.
		m.crew.parts, m.crew.train.compute = parts{bulk: true}, 0
		m.crew.classes = classes{low: true, high: true}
		if _, _, err = m.phase(ctx, "verify", genVerify, limits{ops: int64(sh.Slots)}); err != nil {
			m.fail(ctx)
			return err
		}
	}
	m.verified = sh.Verify
	_, err = c.ask(ctx, sh, &message{Type: msgEnd}, msgEnded)
	return err
}

// fail counts an error of the point; an interrupt is none.
func (m *measurement) fail(ctx context.Context) {
	if ctx.Err() == nil {
		m.failures++
	}
}

// phase runs one phase on both sides. An outcome comes with an error when
// something was measured before it.
func (m *measurement) phase(ctx context.Context, name string, gen int, lim limits) (*outcome, *phaseReport, error) {
	c, sh := m.c, m.sh
	if err := m.crew.prepare(gen); err != nil {
		return nil, nil, err
	}
	release := holdCollector()
	defer release()
	changes := countersAround(c.counters, gen)
	if _, err := c.ask(ctx, sh, &message{Type: msgPhase, Phase: &phaseStart{Name: name, Generation: gen, Operations: lim.ops}}, msgReady); err != nil {
		return nil, nil, err
	}
	out, err := m.watch(ctx, m.crew.start(lim, !sh.streaming()))
	if moved := changes(); moved != nil {
		m.counters.Client = moved
	}
	if err != nil {
		return out, nil, err
	}
	// After an interrupt the server is still told in order, so that the partial
	// result has both sides' figures.
	fctx := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		fctx, cancel = context.WithTimeout(context.Background(), grace)
		defer cancel()
	}
	stop := &phaseStop{Check: sh.Verify, Lanes: m.crew.counts()}
	answer, err := c.ask(fctx, sh, &message{Type: msgStop, Stop: stop}, msgReport)
	if err != nil {
		return out, nil, err
	}
	if sh.Verify {
		if err := m.crew.verifyInitiator(gen); err != nil {
			return out, answer.Report, err
		}
	}
	if sh.Verify && sh.Bidirectional && answer.Report != nil {
		if err := m.crew.verifyTarget(gen, answer.Report.Lanes); err != nil {
			return out, answer.Report, err
		}
	}
	if ctx.Err() != nil {
		return out, answer.Report, interrupted()
	}
	return out, answer.Report, nil
}

// watch waits for the workers, and ends them when the run is interrupted or the
// server goes away.
func (m *measurement) watch(ctx context.Context, r *run) (*outcome, error) {
	interrupt := ctx.Done()
	for {
		select {
		case <-r.done:
			out := r.wait()
			if out.err != nil {
				return out, m.c.explain(out.err)
			}
			return out, nil
		case <-interrupt:
			r.halt(stopSoon)
			interrupt = nil
		case msg, ok := <-m.c.ctl.in:
			r.halt(stopNow)
			out := r.wait()
			switch {
			case out.err != nil && reports.Code(out.err) == reports.ExitCorruption:
				return out, out.err
			case !ok:
				return out, peerError(m.sh.Point.String(), lossCause(m.c.ctl.err), "the server's log, then the same command again")
			case msg.Type == msgError && msg.Error != nil:
				return out, msg.Error.asError(m.c.ctl.peer)
			}
			return out, peerError(m.sh.Point.String(), outOfTurn(msg, msgReport), "")
		}
	}
}

// result is what the document says about the point.
func (m *measurement) result() reports.Result {
	c, sh := m.c, m.sh
	res := reports.Result{
		Stack: c.tr.Name(), Transport: c.plan.Transport, Label: string(c.tr.Caps().Label),
		Workload: sh.Workload, Op: sh.Op, SizeBytes: int64(sh.Size), Depth: sh.Depth, QPs: sh.QPs, Threads: sh.Threads,
		Polling: sh.Polling, MeasuredBy: sideClient, Errors: m.failures, Verified: m.verified,
		Parameters: m.parameters(),
	}
	if sh.Rate > 0 {
		res.Rate, res.Arrivals = sh.Rate, c.plan.Arrivals
	}
	if res.Transport == "" {
		res.Transport = c.tr.Name()
	}
	if sh.Workload == WorkloadHOL || sh.Workload == WorkloadConnect {
		res.RoundTrip = reports.RoundTripFull
	}
	if sh.Workload == WorkloadLatency {
		res.RoundTrip = reports.RoundTripHalf
		if sh.kind().FullRoundTrip() {
			res.RoundTrip = reports.RoundTripFull
		}
	}
	out := m.out
	if out == nil {
		return res
	}
	res.Operations, res.DurationNs = out.ops, int64(out.window)
	res.RawSamples = m.samples
	if r := m.report; r != nil {
		m.counters.Server = r.Counters
	}
	if m.counters.Client != nil || m.counters.Server != nil {
		res.Counters = &m.counters
	}
	if out.series != nil {
		res.Series = out.series.report()
	}
	res.CPU = &reports.CPU{ClientSeconds: out.usage.cpu.Seconds(), MachineSeconds: out.usage.machine.Seconds()}
	res.GC = &reports.GC{ClientCollections: out.usage.collections, ClientAllocations: out.usage.allocations}
	if r := m.report; r != nil {
		res.CPU.ServerSeconds = r.CPUSeconds
		res.GC.ServerCollections, res.GC.ServerAllocations = r.Collections, r.Allocations
	}
	if m.callers != nil {
		m.calls(&res, out)
	} else if out.stages != nil {
		m.connect(&res, out)
	} else if sh.Bidirectional {
		m.bothWays(&res, out)
	} else if sh.Workload == WorkloadHOL {
		res.HOL = m.hol.object(m)
	} else if sh.Workload == WorkloadStarvation {
		m.starvation(&res, out)
	} else if sh.Workload == WorkloadParamServer {
		m.paramServer(&res, out)
	} else if out.rec != nil {
		l := out.rec.Snapshot()
		res.Latency = &l
		if out.service != nil {
			m.openLoop(&res, out)
			return res
		}
		// The loop would have started the next operation as soon as a usual one
		// ended, so the median is the interval that a stall kept from happening.
		corrected := out.rec.Corrected(int64(l.P50))
		res.LatencyCorrected = &corrected
	} else {
		res.Throughput = reports.NewThroughput(out.ops*int64(sh.Size), out.ops, out.window)
		out.peak.report(res.Throughput, sh.Size, sh.Depth*sh.QPs)
		if sh.Workload == WorkloadIncast {
			m.incast(&res, out)
		}
	}
	return res
}

// parameters are the effective options of both sides.
func (m *measurement) parameters() map[string]any {
	c, sh := m.c, m.sh
	if sh.calls() != nil {
		return m.callParameters()
	}
	p := map[string]any{
		"arrival": sh.Arrival, "target": sh.target(), "verify": sh.Verify, "seed": sh.Seed,
		"recv_depth": sh.RecvDepth, "inline_bytes": sh.Inline, "completion_every": sh.Moderation,
		"window_bytes": sh.window(), "slots": sh.Slots, "timeout_ns": int64(sh.Timeout),
		"completion": "ack", "clock": "CLOCK_MONOTONIC", "gc": "off in the window, memory limit 1 GiB",
		"warmup_iterations": c.plan.WarmupIterations, "warmup_ns": int64(c.plan.WarmupDuration),
		"client": map[string]any{"stack": c.tr.Name(), "cpu": m.pinned(), "gomaxprocs": runtime.GOMAXPROCS(0)},
	}
	if c.tr.Caps().LocalComplete {
		p["completion"] = "local"
	}
	if c.plan.Iterations > 0 {
		p["iterations"] = c.plan.Iterations
	} else {
		p["duration_ns"] = int64(c.plan.Duration)
	}
	if sh.ReadDepth > 0 {
		p["read_depth"] = sh.ReadDepth
	}
	if sh.lulls(sideServer) {
		p["target_naps"] = "where its device needs no polls: at most 500 us and a 64th of half of its receives, and 200 us at a time while others take its CPU"
	}
	if sh.Nice > 0 {
		p["worker_nice"] = sh.Nice
	}
	if m.crew != nil && m.crew.workers[0].lulls {
		p["client_naps"] = "at most 500 us and a 64th of what is outstanding, while nothing completes"
	}
	if m.crew != nil && m.crew.workers[0].calm {
		p["other_threads"] = "SCHED_BATCH and, where allowed, 20 ms of timer slack in the window"
	}
	if m.warm != nil {
		p["warmup_operations"] = m.warm.ops
	}
	if sh.Workload == WorkloadLatency {
		volleys := m.crew != nil && m.crew.workers[0].volleys
		ns := c.tr.Caps().VolleyNS
		if !volleys || ns <= 0 {
			ns = loopOverhead()
		}
		if ns > 0 {
			p["loop_overhead_ns"] = ns
		}
		p["volleys"] = volleys
		if clock := c.tr.Caps().VolleyClock; volleys && clock != "" {
			p["clock"] = clock
		}
	}
	if c.raw != nil {
		p["raw_limit"] = c.raw.limit
	}
	if sh.Rate > 0 {
		p["rate"], p["arrivals"] = sh.Rate, c.plan.Arrivals
	}
	if sh.Workload == WorkloadHOL {
		p["arm"], p["probe_slots"], p["probe_priority"], p["probe_arrivals"] = sh.Arm, sh.ProbeSlots, sh.ProbePriority, ArrivalsConstant
		if sh.AppWindow > 0 {
			p["app_slice_bytes"], p["app_window"] = sh.AppSlice, sh.AppWindow
		}
		if c.plan.ProbeInterval == 0 {
			p["probe_arrivals"] = "closed loop"
		}
	}
	if sh.Workload == WorkloadParamServer {
		p["model"], p["arm"], p["levels"], p["tensor_bytes"], p["compute_ratio"] = sh.Model, sh.Arm, sh.Levels, sh.TensorBytes, sh.ComputeRatio
		p["push"], p["pull"], p["fusion"] = "write", "read behind the write", "none"
	}
	if sh.Workload == WorkloadStarvation {
		p["high_load_percent"], p["high_priority"] = sh.HighLoad, sh.HighPriority
	}
	if sh.Bidirectional {
		p["bidirectional"] = true
	}
	if sh.Workload == WorkloadIncast {
		p["server_threads"] = sh.sideThreads(sideServer)
	}
	if sh.Workload != WorkloadLatency {
		p["barrier"] = "answer to an empty send"
		if sh.Arrival == ArrivalCompletion {
			p["barrier"] = "last completion"
		}
	}
	if c.tr.Caps().Label == rdma.LabelMem {
		p["note"] = "both sides in one process: not a network, and client CPU covers both"
	}
	p["server"] = m.serverParameters()
	return p
}

func (m *measurement) serverParameters() map[string]any {
	server := map[string]any{"stack": m.c.server.Stack, "cpu": "none"}
	if r := m.report; r != nil {
		server["operations"], server["gomaxprocs"], server["clients"] = r.Operations, r.Procs, r.Sessions
		if r.Pinned {
			server["cpu"] = m.c.plan.ServerCPU
		}
	}
	return server
}

func (m *measurement) pinned() any {
	if m.crew != nil && m.crew.workers[0].pinned {
		return m.c.plan.ClientCPU
	}
	return "none"
}
