package drive

import (
	"runtime"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
)

// callResult completes the result of a point of calls.
func callResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	CallFigures(m, res, out)
	k, sh := m.Private.(*callers), m.Sh
	tr, err := engine.CallsOf(m.C.Tr)
	if err != nil {
		return // it was one until here
	}
	cost := tr.CallCost()
	rpc := &callskind.RPC{Call: sh.Call, RequestBytes: int64(sh.Size), ResponseBytes: int64(sh.Response),
		Connections: sh.QPs, Outstanding: sh.Depth,
		Form: cost.Form, Mode: cost.Mode, BusyNs: int64(cost.BusyTime), Pollers: cost.Pollers,
		RingBytes: int64(cost.Ring), RegisteredBytes: int64(cost.Registered)}
	if k.idleFor > 0 {
		rpc.Idle = &callskind.IdleCPU{DurationNs: int64(k.idleFor), ClientSeconds: k.idle.Seconds(),
			ServerSeconds: k.idleServer.Seconds()}
	}
	if k.used > 0 {
		rpc.Resident = &callskind.Resident{ClientBytes: k.used, ServerBytes: k.serverUsed,
			ClientPerConnection: float64(k.used-k.base) / float64(sh.QPs),
			ServerPerConnection: float64(k.serverUsed-k.serverBase) / float64(sh.QPs)}
	}
	res.Detail = rpc
	if f := k.work.Result; f != nil {
		callers := make([]engine.Caller, len(k.workers))
		for i, w := range k.workers {
			callers[i] = w.c
		}
		f(m, res, callers)
	}
}

// CallFigures completes what all results of calls have.
func CallFigures(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	k := m.Private.(*callers)
	// How a carrier waits stands in its name, and its goroutines are no threads.
	res.Polling, res.Threads = "", 0
	if res.RoundTrip = reports.RoundTripFull; !k.timed() {
		res.RoundTrip = ""
	}
	if m.Sh.Verify {
		if f := k.work.Compared; f == nil {
			res.Verification = nil // what is compared differs from call to call
		} else {
			whole, bytes := f(m.Sh, out.Ops)
			res.Verification.Whole, res.Verification.Numbers, res.Verification.Bytes = whole, whole, bytes
		}
	}
	res.Throughput = reports.NewThroughput(out.Bytes, out.Ops, out.Window)
	if out.Rec != nil {
		l := out.Rec.Snapshot()
		res.Latency = &l
		if out.Service != nil {
			openLoop(m, res, out)
		} else {
			corrected := out.Rec.Corrected(int64(l.P50)) // as for a ping-pong
			res.LatencyCorrected = &corrected
		}
	}
}

// callParameters are the effective options of both sides of a point of calls.
func callParameters(m *engine.Measurement) map[string]any {
	c, sh := m.C, m.Sh
	p := map[string]any{
		"call": sh.Call, "request_bytes": sh.Size, "response_bytes": sh.Response, "connections": sh.QPs,
		"outstanding": sh.Depth,
		"verify":      sh.Verify, "seed": sh.Seed, "timeout_ns": int64(sh.Timeout), "clock": "CLOCK_MONOTONIC",
		"gc":    callCollector,
		"codec": "bytes without a schema, not copied", "goroutines": sh.QPs * sh.Depth,
		"warmup_iterations": c.Plan.WarmupIterations, "warmup_ns": int64(c.Plan.WarmupDuration),
		"client": map[string]any{"stack": c.Tr.Name(), "cpu": "none", "gomaxprocs": runtime.GOMAXPROCS(0)},
	}
	if c.Plan.Iterations > 0 {
		p["iterations"] = c.Plan.Iterations
	} else {
		p["duration_ns"] = int64(c.Plan.Duration)
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
	if c.Tr.Caps().InProcess {
		p["note"] = "both sides in one process: not a network, and client CPU and memory cover both"
	}
	p["server"] = m.ServerParameters()
	return p
}

// TimesCalls tells whether the latencies of a point of calls mean something.
func TimesCalls(m *engine.Measurement) bool { return m.Private.(*callers).timed() }

// ComparedCalls says that every request was compared by the server and every answer by the
// client, which so many bytes were.
func ComparedCalls(m *engine.Measurement, res *reports.Result, calls, bytes int64) {
	if !m.Sh.Verify {
		return
	}
	v := res.Verification
	if v == nil { // [CallFigures] knew no rule
		v = new(reports.Verification)
		res.Verification = v
	}
	v.Mode, v.Messages, v.Numbers, v.Whole, v.Bytes = reports.VerifyAll, 2*calls, 2*calls, 2*calls, bytes
}
