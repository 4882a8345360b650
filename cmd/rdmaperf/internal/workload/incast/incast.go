package incast

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	incastresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Incast: many clients stream to one server thread. A client is a thread of its own
// with one connection, and nothing is shared between two of them but the process.
// The point's QPs are its clients; the server serves all of them in turn, as one
// node of a cluster does, so it needs busy polling.

// DefaultClients is how many send where nothing is said: a small rack.
const DefaultClients = 8

// check is what only this workload asks of a point.
func check(p engine.Point) error {
	switch k, _ := transports.ParseKind(p.Op); {
	case p.Call == "" && k != transports.KindSend && k != transports.KindWrite && k != transports.KindWriteImm:
		return errors.New("clients send to the server: send, write or write_imm")
	case p.QPs < 1 || p.QPs > engine.MaxThreads:
		return fmt.Errorf("%d clients: want 1 to %d", p.QPs, engine.MaxThreads)
	}
	return nil
}

// shape is a stream with a thread for each client.
func shape(s *engine.Setup) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New(noEvents))
	}
	sh, err := drive.StreamShape(s)
	if err != nil {
		return nil, err
	}
	sh.Threads, sh.Polling = sh.QPs, engine.PollingBusy
	return sh, nil
}

const noEvents = "one thread serves all clients of an incast and cannot sleep on one, so it needs busy polling"

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return calls(ctx, r)
	}
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewFlow)
	if err != nil {
		return err
	}
	if err = m.Warmed(ctx); err == nil {
		err = m.Measure(ctx, reports.SamplesLatency)
	}
	if err == nil {
		err = m.Prove(ctx)
	}
	err = m.Close(ctx, err)
	res := m.Result()
	sh.Barrier(res.Parameters)
	res.Parameters["server_threads"] = serverThreads
	if m.Out != nil {
		drive.OneWay(m, &res, m.Out)
		res.Detail = shares(sh, m.Out)
	}
	r.Add(res)
	return err
}

// serverThreads serve all clients.
const serverThreads = 1

// Server takes what all clients send.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, callDepth)
	}
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	sh.Threads = serverThreads
	return s.Sessions(ctx, sh, drive.NewFlow)
}

// shares are those of the clients.
func shares(sh *engine.Shape, out *engine.Outcome) *incastresults.Incast {
	in := &incastresults.Incast{Clients: sh.QPs}
	var rates []float64
	for _, s := range out.Shares {
		t := reports.NewThroughput(s.Ops*int64(sh.Size), s.Ops, s.Window)
		in.PerClient = append(in.PerClient, incastresults.ClientShare{Operations: s.Ops, DurationNs: int64(s.Window),
			BytesPerSecond: t.BytesPerSecond})
		rates = append(rates, t.BytesPerSecond)
	}
	if len(rates) > 0 {
		in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain = slices.Min(rates), slices.Max(rates),
			incastresults.JainIndex(rates)
	}
	return in
}
