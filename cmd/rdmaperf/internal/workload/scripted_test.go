package workload_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/paramserver"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/tensor"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The script: 700 ns out, 500 ns back, and of each link 100 ns a message and 1 ns a byte.
const (
	out, back, each = 700, 500, 100
	small           = 8 // bytes
	there           = each + small + out
	roundTrip       = there + each + small + back
)

func script() scripted.Times {
	return scripted.Times{Out: out, Back: back, Send: each, PerByte: 1, Idle: 2000}
}

var must = workloadtest.Must

// Of processor time this process uses three of four ns, and the machine five.
const processShare, machineShare = 3, 5

func measure(t *testing.T, f *scripted.Fabric, plan engine.Plan) []reports.Result {
	t.Helper()
	prime(t)
	plan.Workloads = catalogue.Table()
	return enginetest.Measure(t, f, plan, processShare, machineShare)
}

var primed bool

// prime has the loop's own overhead measured by the real clock, once in a process.
func prime(t *testing.T) {
	t.Helper()
	if primed {
		return
	}
	primed = true
	enginetest.Table = catalogue.Table()
	plan := enginetest.QuickPlan(sends...)
	plan.Iterations = 1
	_, err := enginetest.RunPoints(t, enginetest.TcpEnds, plan)
	must(t, err)
}

// spent holds processor times against the window. The server's is longer by what it takes to learn of the end.
func spent(t *testing.T, f *scripted.Fabric, r reports.Result) {
	t.Helper()
	want, tail := float64(r.DurationNs)*processShare/4/1e9, 2*f.Times.Idle.Seconds()*processShare/4
	if f.Steps {
		tail = math.Inf(1)
	}
	c := r.CPU
	if c == nil || !near(c.ClientSeconds, want) || !near(c.MachineSeconds, float64(r.DurationNs)*machineShare/4/1e9) {
		t.Errorf("processor time %+v of a window of %d ns, want %v s", c, r.DurationNs, want)
	} else if c.ServerSeconds < want-2e-9 || c.ServerSeconds > want+tail {
		t.Errorf("processor time %v s of the server, want %v and at most %v more", c.ServerSeconds, want, tail)
	}
}

// near is equal but for what a float loses.
func near(a, b float64) bool { return math.Abs(a-b) <= 2e-9+1e-12*math.Abs(b) }

func TestScriptedLatencies(t *testing.T) {
	const trips = 40
	want := map[string]float64{
		"send": roundTrip / 2, "write": roundTrip / 2, "write_imm": roundTrip / 2,
		"read":      each + out + each + small + back,
		"fetch_add": each + out + each + back, "cmp_swap": each + out + each + back,
	}
	notify := map[string]float64{"write": roundTrip/2 + each} // a message behind each write
	for _, form := range []struct {
		name    string
		f       *scripted.Fabric
		polling string
		rate    float64
		want    map[string]float64
	}{
		{"plain", &scripted.Fabric{}, engine.PollingBusy, 0, nil},
		{"steps", &scripted.Fabric{Steps: true}, engine.PollingBusy, 0, nil},
		{"local completions", &scripted.Fabric{Local: true}, engine.PollingBusy, 0, nil},
		{"no watching", &scripted.Fabric{NoWatch: true}, engine.PollingBusy, 0, notify},
		{"events", &scripted.Fabric{}, engine.PollingEvent, 0, notify},
		{"paced", &scripted.Fabric{}, engine.PollingBusy, 1e5, nil},
		{"paced steps", &scripted.Fabric{Steps: true}, engine.PollingBusy, 1e5, nil},
	} {
		for op, half := range want {
			t.Run(form.name+"/"+op, func(t *testing.T) {
				if w := form.want[op]; w > 0 {
					half = w
				}
				ways := int64(2)
				if kind, _ := transports.ParseKind(op); kind.FullRoundTrip() {
					ways = 1
				}
				f := &scripted.Fabric{Times: script(), Local: form.f.Local, Steps: form.f.Steps,
					NoWatch: form.f.NoWatch}
				plan := engine.Plan{Points: []engine.Point{{Workload: latency.Name, Op: op, Size: small,
					Rate: form.rate}}, Iterations: trips, Verify: true, Polling: form.polling}
				trip := ways * int64(half)
				window := trips * trip
				if form.rate > 0 {
					every := int64(1e9 / form.rate)
					f.Times.Idle = time.Duration(every - trip) // a poll in vain ends when the next one is due
					window = (trips-1)*every + trip
				}
				for _, r := range measure(t, f, plan) {
					l := r.Latency
					if l == nil || l.Count != trips || l.Min != half || l.P50 != half || l.P99 != half ||
						l.Max != half || l.Mean != half || l.StdDev != 0 {
						t.Errorf("%+v, want %v throughout", l, half)
					}
					if r.Operations != trips || r.DurationNs != window {
						t.Errorf("%d operations in %d ns, want %d in %d", r.Operations, r.DurationNs, trips, window)
					}
					if s := r.LatencyService; form.rate > 0 && (s == nil || s.Mean != half || s.Count != trips) {
						t.Errorf("service %+v, want %v", s, half)
					}
					spent(t, f, r)
				}
			})
		}
	}
}

var sends = []engine.Point{{Workload: latency.Name, Op: "send", Size: small}}

// A window by time ends with the first ping-pong behind it, in steps some behind that.
func TestScriptedDuration(t *testing.T) {
	const trips, steps = 500, 64
	for _, c := range []struct {
		steps bool
		most  int64
	}{{false, trips + 1}, {true, trips + steps}} {
		f := &scripted.Fabric{Times: script(), Steps: c.steps}
		for _, r := range measure(t, f, engine.Plan{Points: sends, Duration: trips * roundTrip,
			WarmupDuration: roundTrip, Verify: true}) {
			if r.Operations < trips || r.Operations > c.most || r.DurationNs != r.Operations*roundTrip ||
				r.Latency.Mean != roundTrip/2 {
				t.Errorf("steps %v: %d operations in %d ns, mean %v, want %d to %d of %d", c.steps, r.Operations,
					r.DurationNs, r.Latency.Mean, trips, c.most, roundTrip)
			}
		}
	}
}

// Every second message is 200 ns slower, and one of ten 1000 ns.
func TestScriptedPercentiles(t *testing.T) {
	for _, steps := range []bool{false, true} {
		f := &scripted.Fabric{Times: script(), Steps: steps}
		f.Times.Jitter = func(n int) time.Duration {
			switch {
			case n%10 == 9:
				return 1000
			case n%2 == 1:
				return 200
			}
			return 0
		}
		for _, r := range measure(t, f, engine.Plan{Points: sends, Iterations: 1000, Verify: true}) {
			const half = roundTrip / 2
			l := r.Latency // 500, 400 and 100 of 1000
			if l.P50 != half || l.P90 != half+100 || l.P99 != half+500 || l.Min != half || l.Max != half+500 {
				t.Errorf("steps %v: %+v", steps, l)
			}
			if want := half + (0.4*100 + 0.1*500); !near(l.Mean, want) {
				t.Errorf("steps %v: mean %v, want %v", steps, l.Mean, want)
			}
		}
	}
}

// In an open loop one stall of three intervals is paid by all who were due meanwhile.
func TestScriptedStall(t *testing.T) {
	const (
		every = 10_000
		slow  = 10 // the message that stalls
		trips = 20
		stall = 3*every - roundTrip // it comes back when the third one behind it is due
	)
	f := &scripted.Fabric{Times: script()}
	f.Times.Idle = every - roundTrip
	f.Times.Jitter = func(n int) time.Duration {
		if n == slow {
			return stall
		}
		return 0
	}
	// Those due while one stalls start behind it, and all later ones are late by what is left.
	var want []float64
	begin, free := 0.0, 0.0
	for n := range trips {
		due := float64(n * every)
		begin = max(due, free)
		if idle := due - free; idle > 0 && idle < every-roundTrip {
			begin = free + every - roundTrip // the poll in vain
		}
		took := float64(roundTrip)
		if n == slow {
			took += stall
		}
		free = begin + took
		want = append(want, begin-due+took/2)
	}
	mean := 0.0
	for _, w := range want {
		mean += w / trips
	}
	paced := sends[0]
	paced.Rate = 1e9 / every
	for _, r := range measure(t, f, engine.Plan{Points: []engine.Point{paced}, Iterations: trips, Verify: true}) {
		if l := r.Latency; l.Max != slices.Max(want) || l.Min != slices.Min(want) || !near(l.Mean, mean) {
			t.Errorf("min %v, max %v, mean %v, want %v, %v, %v", l.Min, l.Max, l.Mean, slices.Min(want),
				slices.Max(want), mean)
		}
		if o := r.OpenLoop; o == nil || o.Sent != trips || o.Completed != trips {
			t.Errorf("%+v, want %d sent and completed", o, trips)
		}
	}
}

// A stream takes its link for every message, and its end a barrier there and back, or the last one's way.
func TestScriptedThroughput(t *testing.T) {
	const n, size, depth = 100, 1000, 16
	const message = each + size
	ends := each + out + each + small + back // the barrier is empty, its answer a number
	want := map[string]int{
		"send": n*message + ends, "write_imm": n*message + ends, "write": n*message + ends,
		"read":      each + out + n*message + back,
		"fetch_add": n*each + out + each + back, "cmp_swap": n*each + out + each + back,
	}
	for _, local := range []bool{false, true} {
		for op, window := range want {
			t.Run(fmt.Sprintf("%s/local %v", op, local), func(t *testing.T) {
				plan := engine.Plan{Points: []engine.Point{{Workload: throughput.Name, Op: op, Size: size}},
					Iterations: n, Depth: depth, RecvDepth: 4 * n, Moderation: 1, Verify: op != "write"}
				bytes := int64(n * size)
				if op == "fetch_add" || op == "cmp_swap" {
					plan.Points[0].Size, bytes = small, n*small
				}
				f := &scripted.Fabric{Times: script(), Local: local}
				for _, r := range measure(t, f, plan) {
					if r.Operations != n || r.DurationNs != int64(window) {
						t.Errorf("%d operations in %d ns, want %d in %d", r.Operations, r.DurationNs, n, window)
					}
					rates(t, r.Throughput, n, bytes, window)
					spent(t, f, r)
				}
			})
		}
	}
}

func rates(t *testing.T, p *reports.Throughput, ops, bytes int64, ns int) {
	t.Helper()
	s := float64(ns) / 1e9
	if p == nil || math.Abs(p.OperationsPerSecond*s-float64(ops)) > 1e-6 ||
		math.Abs(p.BytesPerSecond*s-float64(bytes)) > 1e-3 {
		t.Errorf("%+v, want %d operations and %d bytes in %d ns", p, ops, bytes, ns)
	}
}

// Clients of an incast have a link each here, so each has the whole rate.
func TestScriptedIncast(t *testing.T) {
	const n, size, clients = 50, 1000, 4
	window := n*(each+size) + each + out + each + small + back
	plan := engine.Plan{Points: []engine.Point{{Workload: incast.Name, Op: "send", Size: size, QPs: clients}},
		Iterations: n, Depth: 16, RecvDepth: 4 * n, Moderation: 1, Verify: true}
	f := &scripted.Fabric{Times: script()}
	for _, r := range measure(t, f, plan) {
		rates(t, r.Throughput, clients*n, clients*n*size, window)
		in := r.Detail.(*incast.Incast)
		if in.Jain != 1 || len(in.PerClient) != clients || in.PerClient[0].DurationNs != int64(window) ||
			in.MinBytesPerSecond != in.MaxBytesPerSecond {
			t.Errorf("%+v", in)
		}
		spent(t, f, r)
	}
}

// A call takes both ways; the rate is that of all who call.
func TestScriptedCalls(t *testing.T) {
	const n, call = 48, out + back
	type run struct {
		point engine.Point
		bytes int64 // of a call, both ways
	}
	points := map[string]run{
		"rpc": {engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: small,
			Response: 2 * small}, 3 * small},
		"rpc stream": {engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallStream, Size: small,
			Response: small}, 2 * small},
		"rpc together": {engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: small,
			Response: small, QPs: 3, Outstanding: 5}, 2 * small},
		"rpc paced": {engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: small,
			Response: small, QPs: 4, Outstanding: 4, Rate: 1e5}, 2 * small},
		"latency": {rpc.CallPoint(engine.Point{Workload: latency.Name, Op: "call", Size: small}, false), 2 * small},
		"throughput": {rpc.CallPoint(engine.Point{Workload: throughput.Name, Op: "call", Size: small,
			Outstanding: 4}, true), small},
		"tensor pull":     {tensor.TensorPoint("pull", 1<<10), 0},
		"tensor push":     {tensor.TensorPoint("push", 1<<10), 0},
		"tensor exchange": {tensor.TensorPoint("exchange", 1<<10), 0},
	}
	for name, c := range points {
		t.Run(name, func(t *testing.T) {
			p := c.point
			f := &scripted.Fabric{Times: script()}
			for _, r := range measure(t, f, engine.Plan{Points: []engine.Point{p}, Iterations: n, Verify: true}) {
				conns, callers := int64(max(p.QPs, 1)), int64(max(p.Outstanding, p.Depth, 1))
				ops := n * conns
				window := (n / callers) * call
				if n%callers != 0 {
					window += call
				}
				if p.Rate > 0 { // the last is due at its number times the distance of two
					window = (ops-1)*int64(1e9/p.Rate) + call
				}
				if r.Operations != ops || r.DurationNs != window {
					t.Errorf("%d calls in %d ns, want %d in %d", r.Operations, r.DurationNs, ops, window)
				}
				if l := r.Latency; p.Workload != throughput.Name && (l == nil || l.Count != ops || l.Min != call ||
					l.P50 != call || l.Max != call || l.Mean != call) {
					t.Errorf("%+v, want %d calls of %d ns", l, ops, call)
				}
				if p := r.Throughput; p != nil {
					bytes := int64(math.Round(p.BytesPerSecond * float64(window) / 1e9))
					if c.bytes > 0 && bytes != c.bytes*ops {
						t.Errorf("%d bytes, want %d", bytes, c.bytes*ops)
					}
					rates(t, p, ops, bytes, int(window))
				}
				looked := int64(p.Size + p.Response)
				if p.Call == tensor.TensorPull {
					looked = int64(p.Response) + small // what asks for it
				}
				messages := ops
				if p.Workload == latency.Name || p.Workload == throughput.Name {
					messages = 2 * ops // there a request and its answer are two
				}
				if v := r.Verification; v == nil || v.Whole != messages || v.Messages != messages ||
					v.Bytes != looked*ops {
					t.Errorf("compared %+v of %d calls of %d bytes", v, ops, looked)
				}
				spent(t, f, r)
			}
		})
	}
}

// Calls that are due faster than they are made each wait for those before them, from when they were due.
func TestScriptedCallsThatAreLate(t *testing.T) {
	const callers, each, call, every = 16, 3, out + back, 800 // ns between two of a caller's
	p := engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: small, Response: small, QPs: 4,
		Outstanding: 4, Rate: callers * 1e9 / every}
	for _, r := range measure(t, &scripted.Fabric{Times: script()},
		engine.Plan{Points: []engine.Point{p}, Iterations: 4 * each, Verify: true}) {
		const late = call - every // each adds so much to the next
		if l := r.Latency; l.Count != callers*each || l.Min != call || l.P50 != call+late || l.Max != call+2*late ||
			l.Mean != call+late {
			t.Errorf("%+v, want %d, %d and %d ns of each caller", l, call, call+late, call+2*late)
		}
		if s := r.LatencyService; s == nil || s.Min != call || s.Max != call {
			t.Errorf("service %+v, want %d ns", s, call)
		}
		// The first of all is due when the window opens, and cannot be sent before.
		if o := r.OpenLoop; o == nil || o.Late != callers*(each-1)+1 {
			t.Errorf("%+v, want %d late", o, callers*(each-1)+1)
		}
	}
}

// A connection is ready after its set-up and one round trip of a write and a read.
func TestScriptedConnect(t *testing.T) {
	const n, dial = 20, 3_000
	first := each + small + each + out + each + small + back // the read behind the write, and its answer
	f := &scripted.Fabric{Times: script()}
	f.Times.Connect = dial
	points := []engine.Point{{Workload: connect.Name, Op: "read", Size: small}}
	for _, r := range measure(t, f, engine.Plan{Points: points, Iterations: n, Verify: true}) {
		d := r.Detail.(*connect.Connect)
		if l := r.Latency; l.Count != n || l.Mean != float64(dial+first) || d.Connect.Mean != dial ||
			d.FirstRoundTrip.Mean != float64(first) || d.Disconnect.Max != 0 || d.Create.Max != 0 {
			t.Errorf("ready %v, connect %v, first %v, disconnect %v", l.Mean, d.Connect.Mean, d.FirstRoundTrip.Mean,
				d.Disconnect.Mean)
		}
		rates(t, r.Throughput, n, 0, n*(dial+first))
		if v := r.Verification; v == nil || v.Whole != n || v.Bytes != n*small {
			t.Errorf("compared %+v", v)
		}
		spent(t, f, r)
	}
}

// A workload without a script has a reason. Scripts are here, in its folder as scripted_test.go, or below.
func TestEveryWorkloadIsScriptedOrSaysWhyNot(t *testing.T) {
	scripted := []string{latency.Name, throughput.Name, incast.Name, connect.Name, rpc.Name, tensor.Name, hol.Name,
		starvation.Name, paramserver.Name, kv.Name}
	not := map[string]string{
		"softrdma": "points of latency and throughput",
		"clients":  "counts memory and times nothing",
	}
	for _, name := range workload.Names(catalogue.All()) {
		has := slices.Contains(scripted, name)
		for _, pattern := range []string{"scripted_test.go", "*/scripted_test.go"} {
			files, err := filepath.Glob(filepath.Join(name, pattern))
			must(t, err)
			has = has || len(files) > 0
		}
		if has == (not[name] != "") {
			t.Errorf("%s: want a script, or a reason", name)
		}
	}
}

func perSecond(bytes, ns int) float64 { return float64(bytes) / (float64(ns) / 1e9) }

// soon has polls in vain end so soon that who posts one message a turn fills its link.
func soon() *scripted.Fabric {
	f := &scripted.Fabric{Times: script()}
	f.Times.Idle = 100
	return f
}

func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// Both links are full: a window is one side's messages, its word of the end, and the other's answer.
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
		b := throughput.Of(&r)
		for side, d := range map[string]drive.Direction{"client": b.FromClient, "server": b.FromServer} {
			if ns := window[side]; d.Operations != n || d.DurationNs != int64(ns) ||
				!same(d.BytesPerSecond, perSecond(n*size, ns)) {
				t.Errorf("from the %s %+v, want %d in %d ns", side, d, n, ns)
			}
		}
		if r.DurationNs != int64(max(window["client"], window["server"])) ||
			!same(r.Throughput.BytesPerSecond, b.FromClient.BytesPerSecond+b.FromServer.BytesPerSecond) {
			t.Errorf("%d ns, %+v", r.DurationNs, r.Throughput)
		}
	}
}

// Probes on a link of their own take a round trip, alone and beside the bulk, which has all of its link.
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
		s := starvation.Of(&r)
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

// One tensor is written, asked for and read, one after the other; computation of as long is before that.
func TestScriptedTraining(t *testing.T) {
	const n, size = 12, 200
	const trip = each + size + each + out + each + size + back
	const file = "testdata/one.csv"
	model, err := paramserver.LoadModel(file)
	must(t, err)
	var points []engine.Point
	for _, ratio := range []float64{0, 3} {
		pt, err := paramserver.NewPoint(model, file, paramserver.ArmFIFO, 4, ratio)
		must(t, err)
		points = append(points, pt)
	}
	plan := engine.Plan{Points: points, Iterations: n, Verify: true}
	// all times here are multiples of 100 ns, so polls in vain end when computation does
	for i, r := range measure(t, soon(), plan) {
		ps, compute := paramserver.Of(&r), float64(i*3*trip)
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
