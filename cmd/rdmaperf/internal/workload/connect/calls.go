package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	connectkind "github.com/rdmaperf/rdmaperf/reports/kinds/connect"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Connection set-up by calls: from dialling to the first answer. The first round trip is a
// call whose request and answer are of the point's size. A stack of calls does not say when
// its own resources are made, so that stage is empty and all of it is the set-up.

// callWork serves the first calls as the workload rpc does, on connections that follow one
// another.
var callWork = engine.CallWork{Serve: rpc.Work.Serve, Turnover: true}

func byCall() *engine.Workload {
	w := drive.CallRow(Name, connectkind.Kind, &callWork)
	w.Rated, w.Describe = false, nil
	w.Point = func(p engine.Point) error {
		switch {
		case p.Call != engine.CallUnary || p.Response != p.Size:
			return errors.New("the first call is unary, with an answer as long as its request")
		case p.QPs > engine.MaxThreads:
			return fmt.Errorf("%d at once: want 1 to %d", p.QPs, engine.MaxThreads)
		case p.Outstanding != 0:
			return errors.New("a connection makes one call")
		}
		return nil
	}
	w.Shape = func(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
		drive.CallShape(sh, p, ab)
		sh.Depth = 1
	}
	w.Run = runCalls
	w.Result = func(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
		connectResult(m, res, out)
		res.Polling, res.Threads, res.RoundTrip = "", m.Sh.QPs, reports.RoundTripFull
		drive.ComparedCalls(m, res, out.Ops, out.Ops*int64(m.Sh.Size+m.Sh.Response))
	}
	return w
}

// runCalls takes a point of set-up by calls through its phases.
func runCalls(m *engine.Measurement, ctx context.Context) error {
	c, sh := m.C, m.Sh
	tr, err := engine.CallsOf(c.Tr)
	if err != nil {
		return err
	}
	answer, err := c.Ask(ctx, sh, &engine.Message{Type: engine.MsgPoint, Shape: sh}, engine.MsgListening)
	if err != nil {
		return err
	}
	addr, err := c.DataAddr(sh, answer)
	if err != nil {
		return err
	}
	if _, err := c.Hear(ctx, sh, engine.MsgConnected); err != nil {
		return err
	}
	callers := rpc.Work.Callers(sh)
	return runPhases(m, ctx, func(s *setups) func(context.Context, *engine.Phase, int, int64) (times, error) {
		o := &calls{setups: s, tr: tr, addr: addr, cfg: drive.CallConfig(sh, c.Plan.Secret(answer.Listening.Token)), callers: callers}
		return o.setUp
	})
}

// calls sets up connections of calls.
type calls struct {
	*setups
	tr      transports.CallTransport
	addr    string
	cfg     transports.CallConfig
	callers func(transports.CallConn, int) (engine.Caller, error)
}

func (c *calls) setUp(ctx context.Context, r *engine.Phase, index int, n int64) (t times, err error) {
	bound, cancel := context.WithTimeout(ctx, c.m.Sh.Timeout)
	defer cancel()
	t0 := engine.Now()
	conn, err := c.tr.DialCalls(bound, c.addr, c.cfg)
	t1 := engine.Now()
	if err != nil {
		if r.Stop.Load() != 0 {
			return t, engine.ErrStop
		}
		return t, engine.TransportError("connect", err)
	}
	caller, err := c.callers(conn, index)
	t2 := t1
	if err == nil {
		t2, err = first(bound, caller, c.gen, n)
	}
	t3 := engine.Now()
	closing := conn.Close()
	t4 := engine.Now()
	switch {
	case err != nil && r.Stop.Load() != 0 && reports.Code(err) != reports.ExitCorruption:
		return t, engine.ErrStop
	case err != nil:
		return t, drive.CallFailed(c.m.Sh, fmt.Errorf("connection %d: first call: %w", index, err))
	case closing != nil:
		return t, engine.Failed("close connection", closing)
	}
	return newTimes(t0, t0, t1, t2, t3, t4), nil
}

// first makes one call and returns when its answer was there; it is compared after that.
func first(ctx context.Context, c engine.Caller, gen int, n int64) (answered int64, err error) {
	if err := c.Begin(ctx, gen); err != nil {
		return 0, err
	}
	c.Prepare(n)
	err = c.Call()
	answered = engine.Now()
	if err != nil {
		return answered, err
	}
	if _, err := c.Check(0); err != nil {
		return answered, err
	}
	return answered, c.End()
}
