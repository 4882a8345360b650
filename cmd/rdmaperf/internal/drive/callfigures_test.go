package drive

import (
	"errors"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// costing is a stack that carries calls and says what they cost.
type costing struct{ transports.CallTransport }

func (costing) Name() string { return "costing" }
func (costing) Caps() transports.Caps {
	return transports.Caps{Kinds: 1 << transports.KindCall}
}
func (costing) CallCost() transports.CallCost {
	return transports.CallCost{Form: "fused", Mode: "busy", BusyTime: 5 * time.Microsecond, Pollers: 2, Ring: 1 << 18,
		Registered: 1 << 20}
}

// point is one of 4 connections with 3 calls outstanding on each.
func point() (*engine.Measurement, *Calls) {
	sh := &engine.Shape{Point: engine.Point{Size: 100, Call: engine.CallUnary, Response: 20}, QPs: 4, Depth: 3}
	c := &engine.Client{Tr: costing{}}
	m, err := c.NewRun(sh.Point).Measurement(sh)
	if err != nil {
		panic(err)
	}
	return m, &Calls{Measurement: m, groups: []*callGroup{{}}}
}

// What calls cost is of each side, memory also of each connection; what was not measured is not nothing.
func TestWhatCallsCost(t *testing.T) {
	m, k := point()
	m.Out = &engine.Outcome{Ops: 1000, Bytes: 120_000, Window: time.Second}
	res, rpc := k.Result(), k.RPC()
	if rpc.Idle != nil || rpc.Resident != nil {
		t.Errorf("idle %v, resident %v that were not measured", rpc.Idle, rpc.Resident)
	}
	if rpc.RequestBytes != 100 || rpc.ResponseBytes != 20 || rpc.Connections != 4 || rpc.Outstanding != 3 ||
		rpc.BusyNs != 5000 || rpc.Pollers != 2 || rpc.RingBytes != 1<<18 || rpc.RegisteredBytes != 1<<20 {
		t.Errorf("%+v", rpc)
	}
	if res.Polling != "" || res.Threads != 0 || res.RoundTrip != reports.RoundTripFull ||
		res.Throughput.BytesPerSecond != 120_000 || res.Throughput.OperationsPerSecond != 1000 {
		t.Errorf("%+v, throughput %+v", res, res.Throughput)
	}
	k.idleFor, k.idle, k.idleServer = 250*time.Millisecond, 3*time.Millisecond, 7*time.Millisecond
	k.base, k.used, k.serverBase, k.serverUsed = 1000, 5000, 300, 2300
	rpc = k.RPC()
	if i := rpc.Idle; i == nil || i.DurationNs != 250e6 || i.ClientSeconds != 0.003 || i.ServerSeconds != 0.007 {
		t.Errorf("idle %+v", i)
	}
	if r := rpc.Resident; r == nil || r.ClientBytes != 5000 || r.ServerBytes != 2300 || r.ClientPerConnection != 1000 ||
		r.ServerPerConnection != 500 {
		t.Errorf("resident %+v", r)
	}
}

// Latencies of calls are corrected as those of a ping-pong are, and there are none of calls that mean nothing.
func TestLatenciesOfCalls(t *testing.T) {
	m, k := point()
	rec := reports.NewRecorder()
	rec.RecordN(1000, 9)
	rec.RecordN(10_000, 1)
	m.Out = &engine.Outcome{Ops: 10, Window: time.Second, Rec: rec}
	res := k.Result()
	if l, c := res.Latency, res.LatencyCorrected; l == nil || l.P50 != 1000 || c == nil ||
		c.ExpectedIntervalNs != 1000 || c.Count != 19 {
		t.Errorf("latency %+v, corrected %+v, want 9 calls that one of 10 us kept from being made", l, c)
	}
	k.groups[0].Untimed = true
	m.Out = &engine.Outcome{Ops: 10, Window: time.Second}
	if res := k.Result(); res.Latency != nil || res.RoundTrip != "" {
		t.Errorf("latency %v, round trip %q of calls that mean nothing", res.Latency, res.RoundTrip)
	}
}

// Each call is two messages of which both are compared.
func TestBothMessagesOfACallAreCompared(t *testing.T) {
	m, _ := point()
	res := &reports.Result{}
	if ComparedCalls(m, res, 7, 840); res.Verification != nil {
		t.Error("compared without verification")
	}
	m.Sh.Verify, res.Verification = true, new(reports.Verification)
	ComparedCalls(m, res, 7, 840)
	if want := (&reports.Verification{Mode: reports.VerifyAll, Messages: 14, Numbers: 14, Whole: 14,
		Bytes: 840}); !reflect.DeepEqual(res.Verification, want) {
		t.Errorf("%+v, want %+v", res.Verification, want)
	}
	kept := res.Verification
	if ComparedCalls(m, res, 1, 2); res.Verification != kept || kept.Messages != 2 {
		t.Errorf("%+v, want it in its place", res.Verification)
	}
}

// The parameters of a point are those that it ran with: of calls or of time, and with a rate only where there is one.
func TestParametersOfCalls(t *testing.T) {
	m, _ := point()
	m.Plan.Duration, m.Plan.Arrivals = time.Second, engine.ArrivalsConstant
	p := CallParameters(m)
	if _, ok := p["iterations"]; ok || p["duration_ns"] != int64(time.Second) || p["goroutines"] != 12 {
		t.Errorf("%v", p)
	}
	if _, ok := p["rate"]; ok {
		t.Errorf("a closed loop with a rate: %v", p)
	}
	m.Plan.Iterations, m.Sh.Rate = 500, 1000
	p = CallParameters(m)
	if _, ok := p["duration_ns"]; ok || p["iterations"] != int64(500) || p["rate"] != 1000. ||
		p["arrivals"] != engine.ArrivalsConstant {
		t.Errorf("%v", p)
	}
}

type nobody struct{ engine.Caller }

// Callers are counted connection by connection; of a constant rate they follow one another.
func TestCallersAreCountedByConnection(t *testing.T) {
	m, k := point()
	m.Plan.Arrivals = engine.ArrivalsConstant
	conns := make([]transports.CallConn, 5)
	for i := range conns {
		conns[i] = &struct{ transports.CallConn }{}
	}
	k.conns = conns
	var at []transports.CallConn
	g := newCallGroup(CallGroup{First: 2, Conns: 3, Each: 2, Rate: 1000,
		New: func(c transports.CallConn, i int) (engine.Caller, error) {
			if i != len(at) {
				t.Errorf("caller %d is the %dth", i, len(at))
			}
			at = append(at, c)
			return nobody{}, nil
		}})
	if err := g.hire(k); err != nil {
		t.Fatal(err)
	}
	for i, w := range g.workers {
		if at[i] != conns[2+i/2] || w.index != i || w.slot != i%2 || w.conn != 2+i/2 {
			t.Errorf("caller %d: place %d of connection %d", w.index, w.slot, w.conn)
		}
		if w.shift != int64(i)*1e6 {
			t.Errorf("caller %d begins after %d ns, want %d of a rate of 1000/s", i, w.shift, i*1e6)
		}
		w.pace.Start(0)
		if w.pace.Next(); w.pace.Due() != 6e6 {
			t.Errorf("caller %d calls every %d ns, want 6 ms for each of 6", i, w.pace.Due())
		}
	}
	refused := errors.New("refused")
	g = newCallGroup(CallGroup{Conns: 1, Each: 1, New: func(transports.CallConn, int) (engine.Caller, error) {
		return nil, refused
	}})
	if err := g.hire(k); err != refused {
		t.Errorf("%v, want %v", err, refused)
	}
}

// What was done on a connection is the sum of its callers until the last of them ended, and so is that of a group.
func TestSharesOfConnections(t *testing.T) {
	g := &callGroup{CallGroup: CallGroup{First: 2, Conns: 2, Each: 2}}
	for i, w := range []struct{ ops, end int64 }{{5, 1400}, {6, 1300}, {7, 0}, {8, 1900}} {
		g.workers = append(g.workers, &callWorker{conn: 2 + i/2, ops: w.ops, end: w.end})
	}
	if got, want := g.shares(1000), []engine.Share{{Ops: 11, Window: 400},
		{Ops: 15, Window: 900}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	g.tallies = []*tally{{ops: 11, bytes: 110, end: 1400}, {ops: 15, bytes: 150, end: 1900}}
	if got := g.work(1000); *got != (CallsBeside{Ops: 26, Bytes: 260, Window: 900}) {
		t.Errorf("%+v", got)
	}
	if got := (&callGroup{}).work(1000); *got != (CallsBeside{}) {
		t.Errorf("a group that did nothing: %+v", got)
	}
}

// As many calls at a time as there may be goroutines, and no more.
func TestLimitsOfCalls(t *testing.T) {
	caps := transports.Caps{Kinds: transports.Kinds(transports.KindCall), MaxMsg: 4096,
		CallModes: transports.CallModes(transports.CallUnary)}
	for _, c := range []struct {
		name                        string
		qps, depth, outstanding, rs int
		ok                          bool
	}{
		{"as many as may be", 256, 256, 0, 1, true}, {"one more", 1, maxCallers + 1, 0, 1, false},
		{"on connections", 257, 256, 0, 1, false},
		{"of the point's own", 256, 1 << 20, 256, 1, true}, {"of the point's own, one more", 1, 1, maxCallers + 1, 1,
			false},
		{"no depth is one", maxCallers, 0, 0, 1, true}, {"the longest answer", 1, 1, 0, 4096, true},
		{"a longer answer", 1, 1, 0, 4097, false},
	} {
		p := &engine.Plan{QPs: c.qps, Depth: c.depth}
		pt := engine.Point{Op: "call", Call: engine.CallUnary, Size: 1, Outstanding: c.outstanding, Response: c.rs}
		if _, err := CallShape(engine.NewSetup(p, pt, caps, caps), 1); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	sh, err := CallShape(engine.NewSetup(&engine.Plan{QPs: 1}, engine.Point{Op: "call", Call: engine.CallUnary,
		Size: 100, Response: 20, Outstanding: 3}, caps, caps), 1)
	if err != nil || sh.Window() != 360 {
		t.Errorf("%v, %d bytes under way, want three times 120", err, sh.Window())
	}
}

// Resident memory is in bytes, as the kernel counts pages.
func TestResidentIsInBytes(t *testing.T) {
	if got := resident(); got < 1<<20 || got > 1<<40 || got%int64(os.Getpagesize()) != 0 {
		t.Errorf("%d bytes are resident", got)
	}
}

// Both ways, figures are of each direction by its own clock, and their sum.
func TestBothWaysAreAdded(t *testing.T) {
	m := &engine.Measurement{Sh: &engine.Shape{Point: engine.Point{Size: 1000}},
		Report: &engine.PhaseReport{Operations: 300, WindowNs: 2e9}}
	res := &reports.Result{Verification: &reports.Verification{}}
	bothWays(m, res, &engine.Outcome{Ops: 500, Window: time.Second})
	b := res.Detail.(*Bidirectional)
	if b.FromClient.OperationsPerSecond != 500 || b.FromClient.BytesPerSecond != 500_000 ||
		b.FromServer.OperationsPerSecond != 150 || b.FromServer.BytesPerSecond != 150_000 ||
		b.FromServer.DurationNs != 2e9 {
		t.Errorf("%+v", b)
	}
	if res.Operations != 800 || res.Verification.Messages != 800 || res.DurationNs != 2e9 ||
		math.Abs(res.Throughput.OperationsPerSecond-650) > 1e-9 ||
		math.Abs(res.Throughput.BytesPerSecond-650_000) > 1e-9 {
		t.Errorf("%d operations in %d ns, %+v", res.Operations, res.DurationNs, res.Throughput)
	}
}

// Both ways, what was posted and is not outstanding any more counts once.
func TestProgressBothWaysCountsOnce(t *testing.T) {
	w := &flowWorker{Worker: &engine.Worker{Peak: &engine.Peak{}}}
	for range 2 {
		w.lanes = append(w.lanes, &flowLane{Sender: Sender{}})
	}
	const before = -1 // the end of the first slot
	for _, c := range []struct{ posted, out, want int64 }{{5, 5, 0}, {9, 4, 10}, {9, 4, 10}, {9, 5, 10}, {20, 0, 40}} {
		for _, l := range w.lanes {
			l.Posted, l.Out = c.posted, int(c.out)
			w.progress(l, before)
		}
		if w.Peak.Slots[0] != c.want {
			t.Errorf("%d posted, %d outstanding on each of two: %d counted, want %d", c.posted, c.out, w.Peak.Slots[0],
				c.want)
		}
	}
}
