package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Connection set-up by calls: from dialling to the first answer. The first round trip is a
// call whose request and answer are of the point's size. A stack of calls does not say when
// its own resources are made, so that stage is empty and all of it is the set-up.

// callShape is that of a point, and what its calls may be: connections follow one another, so
// that a server may have those that just ended beside those that are new.
func callShape(s *engine.Setup) (*engine.Shape, transports.CallConfig, error) {
	p := s.Point
	switch {
	case p.Call != engine.CallUnary || p.Response != p.Size:
		return nil, transports.CallConfig{},
			engine.Refused(errors.New("the first call is unary, with an answer as long as its request"))
	case p.QPs > engine.MaxThreads:
		return nil, transports.CallConfig{},
			engine.Refused(fmt.Errorf("%d at once: want 1 to %d", p.QPs, engine.MaxThreads))
	case p.Outstanding != 0:
		return nil, transports.CallConfig{}, engine.Refused(errors.New("a connection makes one call"))
	}
	sh, err := rpc.Shape(s, 1)
	if err != nil {
		return nil, transports.CallConfig{}, err
	}
	sh.Depth = 1
	sh.Layout.Window = sh.Size + sh.Response
	cfg := drive.CallConfig(sh, 1)
	cfg.Conns = 2*sh.QPs + spareConns
	return sh, cfg, nil
}

// spareConns are connections whose end a server has not seen yet.
const spareConns = 16

// serveCalls serves the first calls as the workload rpc does.
func serveCalls(ctx context.Context, s *engine.Serve) error {
	sh, cfg, err := callShape(&s.Setup)
	if err != nil {
		return err
	}
	return rpc.Serve(ctx, s, sh, cfg)
}

// byCalls measures one point of set-up by calls.
func byCalls(ctx context.Context, r *engine.Run) error {
	sh, cfg, err := callShape(&r.Setup)
	if err != nil {
		return err
	}
	m, err := r.Measurement(sh)
	if err != nil {
		return err
	}
	tr, err := engine.CallsOf(r.Stack)
	if err != nil {
		return err
	}
	addr, at, err := m.Address(ctx)
	if err != nil {
		return err
	}
	cfg.Secret = m.Secret(at.Token)
	callers := rpc.Callers(sh)
	err = phases(ctx, m, func(s *setups) setUp {
		o := &calls{setups: s, tr: tr, addr: addr, cfg: cfg, callers: callers}
		return o.setUp
	})
	res := m.Result()
	res.Parameters = drive.CallParameters(m)
	if m.Out != nil {
		complete(m, &res, m.Out)
		drive.ComparedCalls(m, &res, m.Out.Ops, m.Out.Ops*int64(sh.Size+sh.Response))
	}
	res.Polling, res.Threads = "", sh.QPs
	r.Add(res)
	return err
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
		return t, drive.ConnectFailed(c.tr, err)
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
