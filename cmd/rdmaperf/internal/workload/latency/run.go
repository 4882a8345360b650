package latency

import (
	"context"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Client measures one point: a ping-pong, or one call at a time on each connection.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return rpc.Measure(ctx, r, 1, false)
	}
	sh, err := drive.PingPongShape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewPingPong)
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		if err = m.Warmed(ctx); err == nil {
			err = m.Measure(ctx, reports.SamplesLatency)
		}
		res := m.Result()
		res.RoundTrip = drive.HalfOrFull(sh)
		drive.PingPongParameters(m, res.Parameters)
		if m.Out != nil {
			drive.Latencies(m, &res, m.Out)
		}
		r.Add(res)
	}
	return m.Close(ctx, err)
}

// Server answers.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, 1)
	}
	sh, err := drive.PingPongShape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, drive.NewPingPong)
}
