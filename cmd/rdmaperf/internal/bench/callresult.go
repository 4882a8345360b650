package bench

import (
	"runtime"

	"github.com/rdmaperf/rdmaperf/reports"
)

// calls completes the result of a point of calls.
func (m *measurement) calls(res *reports.Result, out *outcome) {
	k, sh := m.callers, m.sh
	// How a carrier waits stands in its name, and its goroutines are no threads.
	res.Polling, res.Threads = "", 0
	if res.RoundTrip = reports.RoundTripFull; !k.timed() {
		res.RoundTrip = ""
	}
	res.Throughput = reports.NewThroughput(out.bytes, out.ops, out.window)
	if out.rec != nil {
		l := out.rec.Snapshot()
		res.Latency = &l
		if out.service != nil {
			m.openLoop(res, out)
		} else {
			corrected := out.rec.Corrected(int64(l.P50)) // as for a ping-pong
			res.LatencyCorrected = &corrected
		}
	}
	car, err := carrierOf(m.c.tr)
	if err != nil {
		return // it was one until here
	}
	rpc := &reports.RPC{Call: sh.Call, RequestBytes: int64(sh.Size), ResponseBytes: int64(sh.Response), Connections: sh.QPs, Outstanding: sh.Depth,
		Form: car.Config().Form.String()}
	if p, ok := car.Polling(); ok {
		rpc.Mode, rpc.BusyNs, rpc.Pollers, rpc.RingBytes = p.Mode.String(), int64(max(p.BusyTime, 0)), p.Pollers, int64(car.Config().Net.Ring)
	}
	rpc.RegisteredBytes = int64(car.Registered())
	if k.idleFor > 0 {
		rpc.Idle = &reports.IdleCPU{DurationNs: int64(k.idleFor), ClientSeconds: k.idle.Seconds(), ServerSeconds: k.idleServer.Seconds()}
	}
	if k.used > 0 {
		rpc.Resident = &reports.Resident{ClientBytes: k.used, ServerBytes: k.serverUsed,
			ClientPerConnection: float64(k.used-k.base) / float64(sh.QPs), ServerPerConnection: float64(k.serverUsed-k.serverBase) / float64(sh.QPs)}
	}
	res.RPC = rpc
	if f := k.work.result; f != nil {
		callers := make([]caller, len(k.workers))
		for i, w := range k.workers {
			callers[i] = w.c
		}
		f(m, res, callers)
	}
}

// callParameters are the effective options of both sides of a point of calls.
func (m *measurement) callParameters() map[string]any {
	c, sh := m.c, m.sh
	p := map[string]any{
		"call": sh.Call, "request_bytes": sh.Size, "response_bytes": sh.Response, "connections": sh.QPs, "outstanding": sh.Depth,
		"verify": sh.Verify, "seed": sh.Seed, "timeout_ns": int64(sh.Timeout), "clock": "CLOCK_MONOTONIC", "gc": callCollector,
		"codec": "bytes without a schema, not copied", "goroutines": sh.QPs * sh.Depth,
		"warmup_iterations": c.plan.WarmupIterations, "warmup_ns": int64(c.plan.WarmupDuration),
		"client": map[string]any{"stack": c.tr.Name(), "cpu": "none", "gomaxprocs": runtime.GOMAXPROCS(0)},
	}
	if c.plan.Iterations > 0 {
		p["iterations"] = c.plan.Iterations
	} else {
		p["duration_ns"] = int64(c.plan.Duration)
	}
	if m.warm != nil {
		p["warmup_operations"] = m.warm.ops
	}
	if c.raw != nil {
		p["raw_limit"] = c.raw.limit
	}
	if sh.Rate > 0 {
		p["rate"], p["arrivals"] = sh.Rate, c.plan.Arrivals
	}
	if c.tr.Caps().InProcess {
		p["note"] = "both sides in one process: not a network, and client CPU and memory cover both"
	}
	p["server"] = m.serverParameters()
	return p
}
