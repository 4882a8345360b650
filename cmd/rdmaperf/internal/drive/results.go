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
	// The loop would have started the next operation as soon as a usual one
	// ended, so the median is the interval that a stall kept from happening.
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

// bothWays completes the result with each direction and the sum.
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
