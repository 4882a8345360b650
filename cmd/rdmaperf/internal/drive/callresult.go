package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// RPC is what the result of a point of calls has of its own.
func (k *Calls) RPC() *RPC {
	sh := k.Sh
	rpc := &RPC{Call: sh.Call, RequestBytes: int64(sh.Size), ResponseBytes: int64(sh.Response), Connections: sh.QPs,
		Outstanding: sh.Depth}
	if tr, err := engine.CallsOf(k.Stack); err == nil { // it was one until here
		cost := tr.CallCost()
		rpc.Form, rpc.Mode, rpc.BusyNs, rpc.Pollers = cost.Form, cost.Mode, int64(cost.BusyTime), cost.Pollers
		rpc.RingBytes, rpc.RegisteredBytes = int64(cost.Ring), int64(cost.Registered)
	}
	if k.idleFor > 0 {
		rpc.Idle = &IdleCPU{DurationNs: int64(k.idleFor), ClientSeconds: k.idle.Seconds(),
			ServerSeconds: k.idleServer.Seconds()}
	}
	if k.used > 0 {
		rpc.Resident = &Resident{ClientBytes: k.used, ServerBytes: k.serverUsed,
			ClientPerConnection: float64(k.used-k.base) / float64(sh.QPs),
			ServerPerConnection: float64(k.serverUsed-k.serverBase) / float64(sh.QPs)}
	}
	return rpc
}

// Each calls f for every caller.
func (k *Calls) Each(f func(engine.Caller)) {
	for _, w := range k.workers {
		f(w.c)
	}
}

// Result is what all results of calls have.
func (k *Calls) Result() reports.Result {
	res := k.Measurement.Result()
	res.Parameters = CallParameters(k.Measurement)
	// How a carrier waits is in its name, and its goroutines are no threads.
	res.Polling, res.Threads = "", 0
	if !k.groups[0].Untimed { // the group that is measured: else latencies mean nothing
		res.RoundTrip = reports.RoundTripFull
	}
	out := k.Out
	if out == nil {
		return res
	}
	res.Throughput = reports.NewThroughput(out.Bytes, out.Ops, out.Window)
	Latencies(k.Measurement, &res, out)
	return res
}

// CallParameters are the effective options of both sides of a point of calls.
func CallParameters(m *engine.Measurement) map[string]any {
	sh := m.Sh
	p := m.Parameters(callCollector, "none")
	p["call"], p["request_bytes"], p["response_bytes"], p["connections"], p["outstanding"] = sh.Call, sh.Size,
		sh.Response, sh.QPs, sh.Depth
	p["codec"], p["goroutines"] = "bytes without a schema, not copied", sh.QPs*sh.Depth
	if m.Stack.Caps().InProcess {
		p["note"] = "both sides in one process: not a network, and client CPU and memory cover both"
	}
	return p
}

// ComparedCalls says that both messages of every call were compared, which so many bytes were.
func ComparedCalls(m *engine.Measurement, res *reports.Result, calls, bytes int64) {
	if !m.Sh.Verify {
		return
	}
	v := res.Verification
	if v == nil { // it ended before its window
		return
	}
	v.Mode, v.Messages, v.Numbers, v.Whole, v.Bytes = reports.VerifyAll, 2*calls, 2*calls, 2*calls, bytes
}
