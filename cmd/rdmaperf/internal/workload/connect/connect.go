package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	connectresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect/results"
	"github.com/rdmaperf/rdmaperf/reports"
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

const noEvents = "the first round trip of a connection is polled for, so it needs busy polling"

// needs are those of points with this operation.
func needs(op string) (n engine.Needs) {
	if op != transports.KindCall.String() {
		n.Kinds, n.Why = transports.Kinds(transports.KindWrite), "of the first round trip"
	}
	return n
}

// check is what only this workload asks of a point.
func check(p engine.Point) error {
	switch {
	case p.Call == "" && p.Op != transports.KindRead.String():
		return errors.New("the first round trip is a write and a read: the operation is read, or call")
	case p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d at once: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

// shape has a thread for each connection that is set up at once.
func shape(s *engine.Setup) (*engine.Shape, error) {
	p := s.Point
	if err := check(p); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New(noEvents))
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	if sh.QPs > engine.MaxThreads { // the plan's number
		return nil, engine.Refused(fmt.Errorf("%d at once: want 1 to %d", sh.QPs, engine.MaxThreads))
	}
	sh.Threads, sh.Polling = sh.QPs, engine.PollingBusy
	sh.Arrives(s.Caps)
	sh.Layout = sh.StreamLayout()
	return sh, nil
}

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return byCalls(ctx, r)
	}
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Measurement(sh)
	if err != nil {
		return err
	}
	tr, err := engine.SessionsOf(r.Stack)
	if err != nil {
		return err
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return err
	}
	token, secret := engine.SessionToken(r.Plan.Token, at.Token), m.Secret(at.Token)
	err = phases(ctx, m, func(s *setups) setUp {
		o := &sessions{setups: s, tr: tr, addr: addr, token: token, secret: secret}
		return o.setUp
	})
	res := m.Result()
	sh.Barrier(res.Parameters)
	if m.Out != nil {
		complete(m, &res, m.Out)
	}
	r.Add(res)
	return err
}

// Server takes connections.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return serveCalls(ctx, s)
	}
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return serve(ctx, s, sh)
}

// complete adds every stage to a result.
func complete(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	s := out.Detail.(*[numStages]*reports.Recorder)
	ready := s[stageReady].Snapshot()
	res.Latency, res.RoundTrip = &ready, reports.RoundTripFull
	res.Throughput = reports.NewThroughput(0, out.Ops, out.Window)
	if v := res.Verification; m.Sh.Verify && v != nil { // the answer to each first round trip
		v.Whole, v.Numbers, v.Bytes = out.Ops, out.Ops, out.Ops*int64(m.Sh.Size)
	}
	res.Detail = &connectresults.Connect{AtOnce: m.Sh.QPs, Create: s[stageCreate].Snapshot(),
		Connect:        s[stageConnect].Snapshot(),
		FirstRoundTrip: s[stageFirst].Snapshot(), Disconnect: s[stageDisconnect].Snapshot(),
		Full: s[stageFull].Snapshot()}
}
