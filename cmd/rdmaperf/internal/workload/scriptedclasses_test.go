package workload_test

import (
	"math"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
	paramserverresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	starvationresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	throughputresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput/results"
)

// perSecond is so many bytes in so many ns.
func perSecond(bytes, ns int) float64 { return float64(bytes) / (float64(ns) / 1e9) }

// soon is a fabric whose polls in vain end so soon that whoever posts one message a turn fills
// its link.
func soon() *scripted.Fabric {
	f := &scripted.Fabric{Times: script()}
	f.Times.Idle = 100
	return f
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// Both ways, the links of both directions are full: the window of each is its messages, its word
// of their end, and the other's answer, which waits for the other's messages.
func TestScriptedBothWays(t *testing.T) {
	const n, size = 100, 1000
	const message = each + size
	const begins, ends, answer = each + 1, each + 2, each + 4 // words of the loop have 1, 2 and 4 bytes
	window := map[string]int{
		"client": begins + n*message + ends + out + answer + back,
		"server": n*message + ends + back + answer + out,
	}
	// acknowledgements queue behind the other way's messages
	plan := engine.Plan{Points: []engine.Point{{Workload: throughput.Name, Op: "send", Size: size,
		Bidirectional: true}}, Iterations: n, Depth: 128, RecvDepth: 4 * n, Moderation: 1, Verify: true}
	for _, r := range measure(t, soon(), plan) {
		b := throughputresults.Of(&r)
		if b.FromClient.Operations != n || b.FromClient.DurationNs != int64(window["client"]) ||
			!same(b.FromClient.BytesPerSecond, perSecond(n*size, window["client"])) {
			t.Errorf("from the client %+v, want %d in %d ns", b.FromClient, n, window["client"])
		}
		if b.FromServer.Operations != n || b.FromServer.DurationNs != int64(window["server"]) ||
			!same(b.FromServer.BytesPerSecond, perSecond(n*size, window["server"])) {
			t.Errorf("from the server %+v, want %d in %d ns", b.FromServer, n, window["server"])
		}
		if r.DurationNs != int64(max(window["client"], window["server"])) ||
			!same(r.Throughput.BytesPerSecond, b.FromClient.BytesPerSecond+b.FromServer.BytesPerSecond) {
			t.Errorf("%d ns, %+v", r.DurationNs, r.Throughput)
		}
	}
}

// On a link of their own, probes take a round trip alone and beside the bulk, which has all of
// its link; its window ends with a round trip behind the last message, and a poll in vain at most.
func TestScriptedHeadOfLine(t *testing.T) {
	const n, size, probe = 50, 20_000, 64
	const trip = each + probe + out + each + probe + back
	alone := n*(each+size) + each + out + each + back // the barrier and its answer are empty
	plan := engine.Plan{Points: []engine.Point{hol.NewPoint("write", size, hol.TwoQP, hol.Options{})}, Iterations: n,
		Verify: false}
	for _, r := range measure(t, &scripted.Fabric{Times: script()}, plan) {
		h := hol.Of(&r)
		for name, l := range map[string]struct{ count, p50, mean, max float64 }{
			"alone":  {float64(h.ProbeAlone.Count), h.ProbeAlone.P50, h.ProbeAlone.Mean, h.ProbeAlone.Max},
			"loaded": {float64(h.ProbeLoaded.Count), h.ProbeLoaded.P50, h.ProbeLoaded.Mean, h.ProbeLoaded.Max},
		} {
			if l.count != n || l.p50 != trip || l.mean != trip || l.max != trip {
				t.Errorf("%s: %+v, want %d of %d ns", name, l, n, trip)
			}
		}
		if got, least := h.BulkAloneBytesPerSecond, perSecond(n*size, alone+int(script().Idle)); got < least*(1-1e-9) ||
			got > perSecond(n*size, alone)*(1+1e-9) {
			t.Errorf("bulk alone %v, want %v to %v", got, least, perSecond(n*size, alone))
		}
		if want := perSecond(int(r.Operations)*size, int(r.DurationNs)); !same(h.BulkLoadedBytesPerSecond, want) {
			t.Errorf("bulk loaded %v, want %v", h.BulkLoadedBytesPerSecond, want)
		}
		spent(t, &scripted.Fabric{Times: script()}, r)
	}
}

// One class has the link, and two share it: what both get together is what one gets alone.
func TestScriptedStarvation(t *testing.T) {
	const n, size = 200, 1000
	// The last message leaves, arrives and is acknowledged; then a read of one byte.
	window := n*(each+size) + out + back + each + out + each + 1 + back
	var points []engine.Point
	for _, load := range []float64{0, 50} {
		points = append(points, engine.Point{Workload: starvation.Name, Op: "write", Size: size,
			Options: engine.PackOptions(starvation.Load{High: load, Priority: 1})})
	}
	for i, r := range measure(t, soon(), engine.Plan{Points: points, Iterations: n, Depth: 16, Verify: false}) {
		s := starvationresults.Of(&r)
		want := perSecond(n*size, window)
		if !same(s.CapacityBytesPerSecond, want) || r.Operations != s.High.Operations+s.Low.Operations {
			t.Errorf("capacity %v, want %v; %d operations", s.CapacityBytesPerSecond, want, r.Operations)
		}
		if i == 0 && (r.DurationNs != int64(window) || s.Low.Operations != n || !same(s.Low.BytesPerSecond, want)) {
			t.Errorf("%d low in %d ns, %v a second, want %d in %d", s.Low.Operations, r.DurationNs,
				s.Low.BytesPerSecond, n, window)
		}
		if sum := perSecond(int(r.Operations)*size, int(r.DurationNs)); i == 1 && (s.High.Operations == 0 ||
			!same(s.High.BytesPerSecond+s.Low.BytesPerSecond, sum)) {
			t.Errorf("%+v and %+v, want %v together", s.High, s.Low, sum)
		}
		spent(t, soon(), r)
	}
}

// One tensor is written, asked for and read, one after the other; computation of as long is
// before that.
func TestScriptedTraining(t *testing.T) {
	const n, size = 12, 200
	const trip = each + size + each + out + each + size + back
	const file = "testdata/one.csv"
	model, err := paramserver.LoadModel(file)
	if err != nil {
		t.Fatal(err)
	}
	var points []engine.Point
	for _, ratio := range []float64{0, 3} {
		pt, err := paramserver.NewPoint(model, file, paramserver.ArmFIFO, 4, ratio)
		if err != nil {
			t.Fatal(err)
		}
		points = append(points, pt)
	}
	plan := engine.Plan{Points: points, Iterations: n, Verify: true}
	// all times here are multiples of 100 ns, so polls in vain end when computation does
	for i, r := range measure(t, soon(), plan) {
		ps, compute := paramserverresults.Of(&r), float64(i*3*trip)
		if ps.CommunicationNs != trip || ps.ComputeNs != compute {
			t.Errorf("communication of %v ns and computation of %v, want %d and %v", ps.CommunicationNs, ps.ComputeNs,
				trip, compute)
		}
		if l := ps.Iteration; l.Count != n || math.Abs(l.P50-compute-trip) > l.P50/1000 || l.Mean != compute+trip ||
			l.Max != compute+trip {
			t.Errorf("%+v, want %d of %v ns", l, n, compute+trip)
		}
		if r.Operations != n || r.DurationNs != n*int64(compute+trip) {
			t.Errorf("%d iterations in %d ns", r.Operations, r.DurationNs)
		}
	}
}

// Reading a record is a call; the store's time is none of the script's.
func TestScriptedStore(t *testing.T) {
	const n, call = 40, out + back
	pt := kv.KVPoint(kv.KVLoad{Mix: "c", Records: 20, Fields: 2, FieldBytes: 16, MaxScan: 3})
	for _, r := range measure(t, &scripted.Fabric{Times: script()},
		engine.Plan{Points: []engine.Point{pt}, Iterations: n, Verify: true}) {
		if l := r.Latency; l == nil || l.Count != n || l.P50 != call || l.Mean != call || r.Operations != n ||
			r.DurationNs != n*call {
			t.Errorf("%+v, %d in %d ns, want %d of %d", l, r.Operations, r.DurationNs, n, call)
		}
		if o := kv.Of(&r).Operations; len(o) != 1 || o[0].Latency.Mean != call ||
			!same(o[0].PerSecond, perSecond(1, call)) {
			t.Errorf("%+v, want reads of %d ns", o, call)
		}
		spent(t, &scripted.Fabric{Times: script()}, r)
	}
}
