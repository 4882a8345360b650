package drive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Every operation can be paced; operations are exact, and the wait is part of the latency only.
func TestOpenLoopIsExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, arrivals := range []string{engine.ArrivalsConstant, engine.ArrivalsPoisson} {
			for _, polling := range []string{engine.PollingBusy, engine.PollingEvent} {
				t.Run(name+"/"+arrivals+"/"+polling, func(t *testing.T) {
					plan := enginetest.QuickPlan()
					for _, op := range []string{"send", "write", "read"} {
						plan.Points = append(plan.Points, engine.Point{Workload: latency.Name, Op: op, Size: 64,
							Rate: 5000})
					}
					plan.Iterations, plan.WarmupIterations, plan.QPs, plan.Threads, plan.Polling, plan.Arrivals = 20, 5,
						2, 2, polling, arrivals
					results, err := enginetest.RunPoints(t, e, plan)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range results {
						l, s := r.Latency, r.LatencyService
						if r.Operations != 40 || l.Count != 40 || s == nil || s.Count != 40 || !r.Verified {
							t.Fatalf("%s: %+v, want 40 operations", r.Op, r)
						}
						if l.Min < s.Min || l.Max < s.Max || l.Mean < s.Mean || r.LatencyCorrected != nil {
							t.Errorf("%s: latency %+v, service %+v", r.Op, l, s)
						}
						if r.Rate != 5000 || r.Arrivals != arrivals || r.Parameters["rate"] != 5000.0 {
							t.Errorf("%s: rate %v, arrivals %s, parameters %v", r.Op, r.Rate, r.Arrivals, r.Parameters)
						}
						// 40 operations at 5000 a second cannot be done sooner.
						if arrivals == engine.ArrivalsConstant && r.DurationNs < int64(7*time.Millisecond) {
							t.Errorf("%s: 40 operations in %v", r.Op, time.Duration(r.DurationNs))
						}
					}
				})
			}
		}
	}
}

// A session that breaks between two starts ends the run, not the wait.
func TestOpenLoopNoticesABreakWhileItWaits(t *testing.T) {
	f := &enginetest.Fault{}
	broken := errors.New("the cable is gone")
	polls := 0
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		if polls++; polls > 10_000 {
			return 0, broken
		}
		return s.Poll(dst)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64, Rate: 1})
	_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
	if reports.Code(err) != reports.ExitPeer || !errors.Is(err, broken) {
		t.Errorf("error %v (exit %d), want the broken session and exit 5", err, reports.Code(err))
	}
}

// What was due during a pause counts with its wait, as a lower bound, and the loop is saturated.
func TestOpenLoopLosesNobody(t *testing.T) {
	// The 100th operation is due after 99 ms. The stall reaches well beyond the window: a fast loop would catch up.
	const window, stall, rate = 400 * time.Millisecond, 400 * time.Millisecond, 1000
	const stood = window - 100*time.Millisecond // of the window
	f := &enginetest.Fault{}
	posted := 0
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		if ops[0].Kind == transports.KindSend {
			if posted++; posted == 105 { // five of them in the warm-up
				time.Sleep(stall)
			}
		}
		return s.Post(ops)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64, Rate: rate})
	plan.Iterations, plan.WarmupIterations, plan.Duration = 0, 5, window
	results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	o, l := r.OpenLoop, r.Latency
	if o == nil || o.Due < 398 || o.Due > 401 || o.Sent != o.Completed || o.Completed != r.Operations ||
		o.Completed > 110 || !o.Saturated {
		t.Errorf("loop %+v, want 400 due, about 100 of them done, and saturated", o)
	}
	if l.Count != o.Due || l.Unfinished != o.Due-o.Completed || l.P50 < float64(stood)/4 || !l.IsBound("p50") ||
		!l.IsBound("p99") || !l.IsBound("mean") {
		t.Errorf("latency %+v, want all that were due, p50 and p99 lower bounds of some 100 ms and more", l)
	}
	if l.P99 < 0.9*float64(stood) {
		t.Errorf("p99 %v, want about the time from the stall to the window's end", time.Duration(l.P99))
	}
}

// The loop runs on the null session, and its figure is in latency results only.
func TestLoopOverheadStandsInLatencyResults(t *testing.T) {
	if ns := drive.MeasureOverhead(engine.Limits{Ops: 1000}); ns <= 0 {
		t.Errorf("overhead %v ns, want some", ns)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: latency.Name, Op: "read", Size: 64, Rate: 1e5},
		engine.Point{Workload: throughput.Name, Op: "write", Size: 64})
	results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	first := results[0].Parameters["loop_overhead_ns"]
	if v, ok := first.(float64); !ok || v <= 0 {
		t.Errorf("loop_overhead_ns %v, want a number above 0", first)
	}
	if again := results[1].Parameters["loop_overhead_ns"]; again != first {
		t.Errorf("it was measured again: %v, then %v", first, again)
	}
	if v, ok := results[2].Parameters["loop_overhead_ns"]; ok {
		t.Errorf("throughput has an overhead of %v", v)
	}
}

func TestASleepIsAPartOfWhatTheDeviceHasToDo(t *testing.T) {
	for _, c := range []struct {
		name       string
		left       int
		done, took int64
		want       int64 // ns
	}{
		{"128 of 250 us", 127, 1000, 250_000_000, 250_000 * 127 / 64},
		{"long ones", 127, 10, 100_000_000, drive.MostSleep},
		{"short ones", 128 - 100, 1000, 14_000_000, 6125},
		{"nothing but the next completion", 0, 1000, 250_000_000, 0},
		{"fewer than that", -99, 1000, 250_000_000, 0},
		{"before the first", 127, 0, 250_000_000, 0},
	} {
		if got := drive.SleepTime(c.left, c.done, c.took); got != c.want {
			t.Errorf("%s: %d ns, want %d", c.name, got, c.want)
		}
	}
}

// Only streams over devices that need no polls sleep, where that is asked for, as perftest does not.
func TestOnlyStreamsThatAskAndNeedNoPollsSleep(t *testing.T) {
	unaided := transports.Caps{Unaided: true, Label: rdma.LabelSoft}
	stream := func(op, polling string) engine.Shape {
		return engine.Shape{ClientNaps: true, Point: engine.Point{Workload: throughput.Name, Op: op}, Polling: polling,
			Arrival: engine.ArrivalMessage, RecvDepth: engine.DefaultRecvDepth}
	}
	with := func(sh engine.Shape, change func(*engine.Shape)) engine.Shape {
		change(&sh)
		return sh
	}
	for _, c := range []struct {
		name           string
		caps           transports.Caps
		sh             engine.Shape
		client, server bool
	}{
		{"sends", unaided, stream("send", engine.PollingAdaptive), true, true},
		{"sends with few receives", unaided, with(stream("send", engine.PollingAdaptive),
			func(sh *engine.Shape) { sh.RecvDepth = engine.DefaultRecvDepth / 2 }), true, false},
		{"reads", unaided, with(stream("read", engine.PollingAdaptive),
			func(sh *engine.Shape) { sh.Idle, sh.Arrival = true, engine.ArrivalCompletion }), true, false},
		{"busy sends", unaided, stream("send", engine.PollingBusy), false, false},
		{"events", unaided, stream("send", engine.PollingEvent), false, false},
		{"both ways", unaided, with(stream("send", engine.PollingAdaptive), func(sh *engine.Shape) {
			sh.Bidirectional = true
		}), false, false},
		{"echoes", unaided, with(stream("send", engine.PollingAdaptive), func(sh *engine.Shape) {
			sh.Workload, sh.ClientNaps = latency.Name, false
		}), false, false},
		{"user space", transports.Caps{Label: rdma.LabelSoft}, stream("send", engine.PollingAdaptive), false, false},
	} {
		c.sh.Threads = 1
		if c.sh.ClientNaps {
			c.sh.ClientNaps, c.sh.ServerNaps = drive.StreamSleeps(&c.sh, engine.SideClient),
				drive.StreamSleeps(&c.sh, engine.SideServer)
		}
		if _, err := engine.NewSetup(&engine.Plan{}, c.sh.Point, c.caps,
			c.caps).Shape(func(*engine.Setup) (*engine.Shape, error) { return &c.sh, nil }); err != nil {
			t.Fatal(err)
		}
		for side, want := range map[string]bool{engine.SideClient: c.client, engine.SideServer: c.server} {
			group, err := engine.NewGroup(&c.sh, side, nil, -1, c.caps, noSide)
			if err != nil {
				t.Fatal(err)
			}
			defer group.Close()
			if w := group.Workers[0]; w.Sleeps != want || w.Yielder.Sleeps != (want && side == engine.SideServer) {
				t.Errorf("%s, %s: sleep %v, sleeps %v, want %v", c.name, side, w.Sleeps, w.Yielder.Sleeps, want)
			}
		}
	}
}

func noSide(*engine.Group) (engine.Side, error) { return idle{}, nil }

type idle struct{ engine.Side }

func (idle) Close() error { return nil }

// What a result says of its polling is what was done.
func TestAdaptivePollingIsBusyWhereNobodySleeps(t *testing.T) {
	for _, c := range []struct {
		ends  enginetest.Ends
		shape func(*engine.Setup) (*engine.Shape, error)
		want  string
	}{
		{enginetest.MemEnds, drive.ThroughputShape, engine.PollingAdaptive},
		{enginetest.MemEnds, drive.PingPongShape, engine.PollingBusy},
		{enginetest.IwarpEnds, drive.ThroughputShape, engine.PollingBusy}, // its own thread is the device
	} {
		tr, _ := c.ends(t)
		plan := engine.Plan{Points: []engine.Point{{Op: "send", Size: 64}}, Polling: engine.PollingAdaptive}
		sh := enginetest.ShapeOf(t, plan, tr.Caps(), tr.Caps(), c.shape)
		if sh.Polling != c.want {
			t.Errorf("%s: polling %s, want %s", tr.Name(), sh.Polling, c.want)
		}
	}
}

func TestMain(m *testing.M) {
	enginetest.Main(m, catalogue.Table())
}
