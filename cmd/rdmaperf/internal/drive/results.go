package drive

import (
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Latencies completes a result of latencies.
func Latencies(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	if out.Rec == nil {
		return
	}
	l := out.Rec.Snapshot()
	res.Latency = &l
	if out.Service != nil {
		openLoop(m, res, out)
		return
	}
	// A median apart is when the loop would have started operations that a stall kept from happening.
	corrected := out.Rec.Corrected(int64(l.P50))
	res.LatencyCorrected = &corrected
}

// OneWay completes the result of a stream.
func OneWay(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	sh := m.Sh
	res.Throughput = reports.NewThroughput(out.Ops*int64(sh.Size), out.Ops, out.Window)
	out.Peak.Report(res.Throughput, sh.Size, sh.Depth*sh.QPs)
}

// Throughput completes the result of a stream, one way or both.
func Throughput(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	if m.Sh.Bidirectional {
		bothWays(m, res, out)
		return
	}
	OneWay(m, res, out)
}

// HalfOrFull is what a latency covers.
func HalfOrFull(sh *engine.Shape) string {
	if sh.Kind().FullRoundTrip() {
		return reports.RoundTripFull
	}
	return reports.RoundTripHalf
}

// PingPongParameters say how the samples were taken, and what the loop puts into one.
func PingPongParameters(m *engine.Measurement, p map[string]any) {
	caps := m.Stack.Caps()
	inProvider := m.Sh.Loop == engine.LoopProvider
	ns := caps.PingPongNS
	if !inProvider || ns <= 0 {
		ns = loopOverhead()
	}
	if ns > 0 && caps.Clock == nil {
		p["loop_overhead_ns"] = ns
	}
	p["loop"] = m.Sh.Loop
	if inProvider && caps.PingPongClock != "" {
		p["clock"] = caps.PingPongClock
	}
}

func ThroughputParameters(m *engine.Measurement, p map[string]any) {
	m.Sh.Barrier(p)
	if m.Sh.Bidirectional {
		p["bidirectional"] = true
	}
}

func bothWays(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	size := int64(m.Sh.Size)
	direction := func(ops int64, window time.Duration) Direction {
		t := reports.NewThroughput(ops*size, ops, window)
		return Direction{Operations: ops, DurationNs: int64(window), BytesPerSecond: t.BytesPerSecond,
			OperationsPerSecond: t.OperationsPerSecond}
	}
	b := &Bidirectional{FromClient: direction(out.Ops, out.Window)}
	if r := m.Report; r != nil {
		b.FromServer = direction(r.Operations, time.Duration(r.WindowNs))
	}
	res.Detail, res.MeasuredBy = b, engine.SideBoth
	res.Operations = b.FromClient.Operations + b.FromServer.Operations
	res.Verification.Messages = res.Operations // both sides reported what they compared
	res.DurationNs = max(b.FromClient.DurationNs, b.FromServer.DurationNs)
	res.Throughput = &reports.Throughput{
		BytesPerSecond:      b.FromClient.BytesPerSecond + b.FromServer.BytesPerSecond,
		OperationsPerSecond: b.FromClient.OperationsPerSecond + b.FromServer.OperationsPerSecond,
	}
	if r := m.Report; r != nil && r.PeakBps > 0 && out.Peak.Exact() {
		t := reports.Throughput{BytesPerSecond: b.FromClient.BytesPerSecond}
		out.Peak.Report(&t, m.Sh.Size, m.Sh.Depth*m.Sh.QPs)
		// As perftest: the sum of two peaks that need not be at the same time.
		res.Throughput.PeakBytesPerSecond, res.Throughput.PeakOverNs = t.PeakBytesPerSecond+r.PeakBps, t.PeakOverNs
	}
}

// RPC is what a workload of calls was, and what both sides used beside the calls.
type RPC struct {
	Call            string `json:"call"` // unary, stream (exchanges on one), oneway (messages to the server)
	RequestBytes    int64  `json:"request_bytes"`
	ResponseBytes   int64  `json:"response_bytes"`
	Connections     int    `json:"connections"`
	Outstanding     int    `json:"outstanding"`    // calls on each connection
	Form            string `json:"form"`           // tcp, unix, dropin, fused, bufconn
	Mode            string `json:"mode,omitempty"` // bp, event, bpev; of the forms over RDMA
	BusyNs          int64  `json:"busy_ns,omitempty"`
	Pollers         int    `json:"pollers,omitempty"`
	RingBytes       int64  `json:"ring_bytes,omitempty"`
	RegisteredBytes int64  `json:"registered_bytes,omitempty"` // the registered memory of one connection on one side

	Idle     *IdleCPU  `json:"idle,omitempty"`
	Resident *Resident `json:"resident,omitempty"`
}

// IdleCPU is the processor time of both sides while all connections stood and nothing was called.
type IdleCPU struct {
	DurationNs    int64   `json:"duration_ns"`
	ClientSeconds float64 `json:"client_seconds"`
	ServerSeconds float64 `json:"server_seconds"`
}

// Resident is the resident memory of both processes after a collection, and how much came with each connection.
type Resident struct {
	ClientBytes         int64   `json:"client_bytes"`
	ServerBytes         int64   `json:"server_bytes"`
	ClientPerConnection float64 `json:"client_bytes_per_connection"`
	ServerPerConnection float64 `json:"server_bytes_per_connection"`
}

// Member implements reports.Detail.
func (*RPC) Member(string) string { return "rpc" }

// Bidirectional is what each side sent while the other did.
type Bidirectional struct {
	FromClient Direction `json:"from_client"`
	FromServer Direction `json:"from_server"`
}

// Direction is one side's stream over its own window, by its own clock.
type Direction struct {
	Operations          int64   `json:"operations"`
	DurationNs          int64   `json:"duration_ns"`
	BytesPerSecond      float64 `json:"bytes_per_second"`
	OperationsPerSecond float64 `json:"operations_per_second"`
}

// Member implements reports.Detail.
func (*Bidirectional) Member(string) string { return "bidirectional" }

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
	p := m.Parameters("as in a process with 32 MiB in use", "none")
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
