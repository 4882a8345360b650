package drive

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// with is a stack of such capabilities.
type with struct {
	transports.CallTransport
	caps transports.Caps
}

func (w with) Caps() transports.Caps { return w.caps }

// A peak is of parts long enough for the operations outstanding on all queue pairs together.
func TestPeaksKnowWhatIsOutstanding(t *testing.T) {
	for qps, over := range map[int]time.Duration{1: time.Millisecond, 4: 4 * time.Millisecond,
		16: 16 * time.Millisecond} {
		w := &engine.Worker{Peak: new(engine.Peak)}
		w.Open()
		for ms := range int64(64) { // 32 outstanding on one need 256 in a part
			w.Took(w.Begin+ms*1e6, 300)
		}
		m := &engine.Measurement{Sh: &engine.Shape{Point: engine.Point{Size: 10}, Depth: 32, QPs: qps}}
		res := &reports.Result{}
		OneWay(m, res, &engine.Outcome{Ops: 64 * 300, Window: 64 * time.Millisecond, Peak: w.Peak})
		if p := res.Throughput; p.PeakOverNs != int64(over) || p.BytesPerSecond != 3e6 || p.OperationsPerSecond != 3e5 {
			t.Errorf("%d queue pairs: %+v, want a peak over %v", qps, p, over)
		}
	}
}

// What the loop puts into a sample is the provider's where it takes the steps and says so, else the loop's own.
func TestWhatTheLoopPutsIntoASample(t *testing.T) {
	defer func(f func() float64) { loopOverhead = f }(loopOverhead)
	for _, c := range []struct {
		name  string
		loop  string
		caps  transports.Caps
		own   float64
		ns    any
		clock any
	}{
		{"plain", engine.LoopPlain, transports.Caps{PingPongNS: 5, PingPongClock: "tsc"}, 70, 70., nil},
		{"in the provider", engine.LoopProvider, transports.Caps{PingPongNS: 5, PingPongClock: "tsc"}, 70, 5., "tsc"},
		{"that does not say", engine.LoopProvider, transports.Caps{}, 70, 70., nil},
		{"not known", engine.LoopPlain, transports.Caps{}, 0, nil, nil},
		{"another clock", engine.LoopPlain, transports.Caps{Clock: new(rdma.Clock)}, 70, nil, nil},
	} {
		loopOverhead = func() float64 { return c.own }
		p := map[string]any{}
		PingPongParameters(&engine.Measurement{Stack: with{caps: c.caps}, Sh: &engine.Shape{Loop: c.loop}}, p)
		if p["loop_overhead_ns"] != c.ns || p["clock"] != c.clock || p["loop"] != c.loop {
			t.Errorf("%s: %v", c.name, p)
		}
	}
}

// Operations of a stream come round slot by slot: where they leave and land, and what they bring.
func TestPreparedOperations(t *testing.T) {
	for _, op := range []string{"send", "write", "write_imm", "read", "fetch_add", "cmp_swap"} {
		sh := &engine.Shape{Point: engine.Point{Op: op, Size: 100}, Depth: 5, Moderation: 4, Slots: 8, RecvDepth: 4}
		_, _, l := pulled(sh, engine.SideClient)
		s := NewSender(l)
		if len(s.Ops) != 8+5 || s.TakesReceive != (op == "send" || op == "write_imm") {
			t.Errorf("%s: %d operations, takes receives: %v", op, len(s.Ops), s.TakesReceive)
		}
		for i, got := range s.Ops {
			slot := i % 8
			from, to, add := uint64(slot*128), uint64(sh.RxSlot(slot)), uint64(0)
			switch op {
			case "read":
				from, to = to, from
			case "fetch_add", "cmp_swap":
				from, to, add = to, uint64(sh.RxSlot(0)), 1
			}
			if got.Local != from || got.Remote != to || got.Add != add || got.Len != 100 || got.Slot != 1 ||
				got.Flags != 0 || got.Kind != sh.Kind() {
				t.Errorf("%s: operation %d is %+v", op, i, got)
			}
		}
	}
}

// The rate that was achieved is of the window as it was meant to be, or of the time that passed.
func TestAchievedRates(t *testing.T) {
	for _, c := range []struct {
		meant time.Duration
		err   error
		rate  float64
	}{{0, nil, 20}, {2 * time.Second, nil, 50}, {2 * time.Second, errors.New("broken"), 20}} {
		m := &engine.Measurement{Plan: &engine.Plan{Duration: c.meant}}
		o := OpenLoopOf(m, &engine.Outcome{Err: c.err, Unanswered: 3, Unsent: 7, Late: 2}, 55, false, 100,
			5*time.Second)
		if o.AchievedPerSecond != c.rate || o.Sent != 103 || o.Completed != 100 || o.Due != 110 || o.Late != 2 ||
			o.OfferedPerSecond != 55 {
			t.Errorf("a window of %v, %v: %+v", c.meant, c.err, o)
		}
	}
}

// Arrivals by chance may be as many fewer than the rate as chance makes them; constant ones not.
func TestArrivalsByChanceVary(t *testing.T) {
	for arrivals, saturated := range map[string]bool{engine.ArrivalsConstant: true, engine.ArrivalsPoisson: false} {
		m := &engine.Measurement{Plan: &engine.Plan{}, Sh: &engine.Shape{Point: engine.Point{Rate: 110},
			Arrivals: arrivals}}
		service := reports.NewRecorder()
		service.RecordN(500, 100)
		res := &reports.Result{Parameters: map[string]any{}}
		openLoop(m, res, &engine.Outcome{Service: service, Window: time.Second, Late: 4, Unsent: 0})
		if o := res.OpenLoop; o.Saturated != saturated || o.AchievedPerSecond != 100 ||
			res.LatencyService.Mean != 500 || res.Parameters["late_operations"] != int64(4) ||
			res.Parameters["rate_achieved"] != 100. {
			t.Errorf("%s: %+v, %v", arrivals, o, res.Parameters)
		}
	}
}
