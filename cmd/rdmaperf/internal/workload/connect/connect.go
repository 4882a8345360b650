package connect

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	connectkind "github.com/rdmaperf/rdmaperf/reports/kinds/connect"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Connection set-up: every thread opens a connection, makes a first round trip on
// it, closes it, and begins again. The round trip is a write and a read of the same
// bytes in one Post: one-sided, because a message may not be sent before both sides
// agreed to start, and no agreement comes free. Each step is timed, and the whole
// from the start. The point's QPs are the connections that are set up at once.

// stage is a part of a connection's life.
type stage int

const (
	stageCreate     stage = iota // window, queues and QP; nothing was sent
	stageConnect                 // the transport's own set-up
	stageFirst                   // the first round trip
	stageDisconnect              // closing, until all is given back
	stageReady                   // from the start to the end of the first round trip
	stageFull                    // all of it
	numStages
)

// validateConnect checks what only this workload asks of a point.
func validateConnect(p engine.Point) error {
	switch {
	case p.Op != transports.KindRead.String():
		return errors.New("the first round trip is a write and a read: the operation is read, or call")
	case p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d at once: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

// connectShape has a thread for each connection that is set up at once.
func connectShape(sh *engine.Shape, _ *engine.Plan, ab engine.Abilities) {
	sh.Threads, sh.Depth, sh.RecvDepth, sh.Moderation, sh.Slots = sh.QPs, 1, 1, 1, 1
	sh.Arrives(ab)
}

func checkConnect(sh *engine.Shape) error {
	if sh.Threads != sh.QPs || sh.QPs > engine.MaxThreads || sh.Polling != engine.PollingBusy || sh.Depth != 1 || sh.Slots != 1 || sh.RecvDepth != 1 {
		return fmt.Errorf("%d threads for %d connections at once, depth %d, %s polling", sh.Threads, sh.QPs, sh.Depth, sh.Polling)
	}
	return nil
}

// connectResult completes the result with every stage.
func connectResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	s := out.Detail.(*[numStages]*reports.Recorder)
	ready := s[stageReady].Snapshot()
	res.Latency, res.LatencyCorrected = &ready, nil
	res.Throughput = reports.NewThroughput(0, out.Ops, out.Window)
	if v := res.Verification; m.Sh.Verify && v != nil { // the answer to each first round trip
		v.Whole, v.Numbers, v.Bytes = out.Ops, out.Ops, out.Ops*int64(m.Sh.Size)
	}
	res.Detail = &connectkind.Connect{AtOnce: m.Sh.QPs, Create: s[stageCreate].Snapshot(), Connect: s[stageConnect].Snapshot(),
		FirstRoundTrip: s[stageFirst].Snapshot(), Disconnect: s[stageDisconnect].Snapshot(), Full: s[stageFull].Snapshot()}
}
