package bench

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestALullIsAPartOfWhatTheDeviceHasToDo(t *testing.T) {
	for _, c := range []struct {
		name       string
		left       int
		done, took int64
		want       int64 // ns
	}{
		{"128 of 250 us", 127, 1000, 250_000_000, 250_000 * 127 / 64},
		{"long ones", 127, 10, 100_000_000, mostLull},
		{"short ones", 128 - 100, 1000, 14_000_000, 6125},
		{"nothing but the next completion", 0, 1000, 250_000_000, 0},
		{"fewer than that", -99, 1000, 250_000_000, 0},
		{"before the first", 127, 0, 250_000_000, 0},
	} {
		if got := lullOf(c.left, c.done, c.took); got != c.want {
			t.Errorf("%s: %d ns, want %d", c.name, got, c.want)
		}
	}
}

// Who does not ask for it polls all the time, as perftest does. Only devices that need no
// polls work on while their user sleeps; who is paced by echoes is not a stream.
func TestOnlyStreamsThatAskAndNeedNoPollsLull(t *testing.T) {
	unaided := transports.Caps{Unaided: true, Label: rdma.LabelSoft}
	stream := func(op, polling string) Shape {
		return Shape{Point: Point{Workload: WorkloadThroughput, Op: op}, Polling: polling, Arrival: ArrivalMessage, RecvDepth: DefaultRecvDepth}
	}
	with := func(sh Shape, change func(*Shape)) Shape {
		change(&sh)
		return sh
	}
	for _, c := range []struct {
		name           string
		caps           transports.Caps
		sh             Shape
		client, server bool
	}{
		{"sends", unaided, stream("send", PollingAdaptive), true, true},
		{"sends with few receives", unaided, with(stream("send", PollingAdaptive), func(sh *Shape) { sh.RecvDepth = DefaultRecvDepth / 2 }), true, false},
		{"reads", unaided, with(stream("read", PollingAdaptive), func(sh *Shape) { sh.Idle, sh.Arrival = true, ArrivalCompletion }), true, false},
		{"busy sends", unaided, stream("send", PollingBusy), false, false},
		{"events", unaided, stream("send", PollingEvent), false, false},
		{"both ways", unaided, with(stream("send", PollingAdaptive), func(sh *Shape) { sh.Bidirectional = true }), false, false},
		{"echoes", unaided, with(stream("send", PollingAdaptive), func(sh *Shape) { sh.Workload = WorkloadLatency }), false, false},
		{"user space", transports.Caps{Label: rdma.LabelSoft}, stream("send", PollingAdaptive), false, false},
	} {
		c.sh.Threads = 1
		for side, want := range map[string]bool{sideClient: c.client, sideServer: c.server} {
			crew, err := newCrew(&c.sh, side, nil, -1, c.caps)
			if err != nil {
				t.Fatal(err)
			}
			defer crew.close()
			if w := crew.workers[0]; w.lulls != want || w.offers.naps != (want && side == sideServer) {
				t.Errorf("%s, %s: lulls %v, naps %v, want %v", c.name, side, w.lulls, w.offers.naps, want)
			}
		}
	}
}

// What a result says of its polling is what was done.
func TestAdaptivePollingIsBusyWhereNobodySleeps(t *testing.T) {
	for _, c := range []struct {
		ends     ends
		workload string
		want     string
	}{
		{memEnds, WorkloadThroughput, PollingAdaptive},
		{memEnds, WorkloadLatency, PollingBusy},
		{iwarpEnds, WorkloadThroughput, PollingBusy}, // its own thread is the device
	} {
		tr, _ := c.ends(t)
		sh, err := newShape(&Plan{QPs: 1, Threads: 1, Polling: PollingAdaptive, Timeout: DefaultTimeout}, Point{Workload: c.workload, Op: "send", Size: 64}, tr.Caps(), tr.Caps())
		if err != nil {
			t.Fatal(err)
		}
		if sh.Polling != c.want {
			t.Errorf("%s %s: polling %s, want %s", tr.Name(), c.workload, sh.Polling, c.want)
		}
	}
}
