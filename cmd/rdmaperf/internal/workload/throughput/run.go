// Package throughput is the workload of streams: as many operations outstanding on each
// queue pair as its depth says, in one direction or in both at once.
package throughput

import (
	"context"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
)

// DefaultCallDepth is how many calls of throughput are outstanding on a connection: each is a
// goroutine, and a carrier's ring is full of fewer large ones.
const DefaultCallDepth = 16

// Client measures one point: a stream, one way or both, or many calls.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return rpc.Measure(ctx, r, DefaultCallDepth, true)
	}
	sh, err := drive.ThroughputShape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Connect(ctx, sh, drive.NewFlow)
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		if err = m.Warmed(ctx); err == nil {
			err = m.Measure(ctx, reports.SamplesLatency)
		}
		if err == nil {
			err = m.Prove(ctx)
		}
		res := m.Result()
		drive.ThroughputParameters(m, res.Parameters)
		if m.Out != nil {
			drive.Throughput(m, &res, m.Out)
		}
		r.Add(res)
	}
	return m.Close(ctx, err)
}

// Server takes what is sent, and both ways sends, too.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return rpc.Answer(ctx, s, DefaultCallDepth)
	}
	sh, err := drive.ThroughputShape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, drive.NewFlow)
}
