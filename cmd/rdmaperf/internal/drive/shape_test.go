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

// What is compared has a place of its own; what is not stays in the cache, as one buffer does.
func TestStreamsThatNobodyComparesStayInTheCache(t *testing.T) {
	memory, _ := enginetest.MemEnds(t)
	for _, c := range []struct {
		verify      bool
		size, slots int
	}{
		{true, 64 << 10, 128},
		{false, 64 << 10, 1},
		{false, 4 << 10, 16},
		{true, 64, 128},
		{false, 64, 128},
		{false, 4 << 20, 1},
	} {
		plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: transports.KindSend.String(),
			Size: c.size})
		plan.Depth, plan.Moderation, plan.Verify, plan.Polling = 128, 1, c.verify, engine.PollingBusy
		sh := enginetest.ShapeOf(t, plan, memory.Caps(), memory.Caps(), drive.ThroughputShape)
		if sh.Slots != c.slots {
			t.Errorf("%d bytes, compared %v: %d slots, want %d", c.size, c.verify, sh.Slots, c.slots)
		}
	}
}

// A slot is a message's own until it was compared, so there are no more receives than slots,
// also where there are just as many slots as operations to a completion.
func TestThereAreNoMoreReceivesThanSlots(t *testing.T) {
	memory, _ := enginetest.MemEnds(t)
	for _, moderation := range []int{1, 8, 16, 128} {
		plan := enginetest.QuickPlan(engine.Point{Workload: throughput.Name, Op: transports.KindSend.String(),
			Size: 1 << 20})
		plan.Depth, plan.Moderation, plan.Verify, plan.Polling = 128, moderation, true, engine.PollingBusy
		sh := enginetest.ShapeOf(t, plan, memory.Caps(), memory.Caps(), drive.ThroughputShape)
		if sh.Slots != 16 || sh.RecvDepth != sh.Slots {
			t.Errorf("a completion of %d: %d slots and %d receives, want 16 of both", moderation, sh.Slots,
				sh.RecvDepth)
		}
	}
}

// A message that is prepared with others has bytes and a slot of its own.
func TestTheMessagesOfABatchShareNoBytes(t *testing.T) {
	for _, size := range []int{1, engine.MediumMessage, engine.MediumMessage + 1} {
		sh := &engine.Shape{Point: engine.Point{Workload: latency.Name, Size: size}}
		steps := drive.BatchSteps(sh)
		if slots := drive.LatencySlotsFor(size); steps > 1 && slots < 2*steps {
			t.Errorf("%d bytes: %d slots for batches of %d", size, slots, steps)
		}
		if steps > engine.LatencyShifts {
			t.Errorf("%d bytes: batches of %d, %d sources", size, steps, engine.LatencyShifts)
		}
		if steps > 1 && drive.Shift(sh) < size {
			t.Errorf("%d bytes: sources are %d apart", size, drive.Shift(sh))
		}
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
