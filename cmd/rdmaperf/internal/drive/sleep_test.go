package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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

// Who does not ask for it polls all the time, as perftest does. Only devices that need no
// polls work on while their user sleeps; who is paced by echoes is not a stream.
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

// noSide is a side without sessions.
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
