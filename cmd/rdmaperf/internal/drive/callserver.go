package drive

import (
	"context"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"net"
	"runtime"
	"sync"
)

// callPoint serves a point of a workload of calls: a server of its own for the
// point's whole time, and phases that are watched while it works.
func callPoint(c *engine.ServedClient, ctx context.Context, sh *engine.Shape) (err error) {
	tr, err := engine.CallsOf(c.Tr)
	if err != nil {
		return err
	}
	failure := make(chan error, 1)
	svc, err := sh.Calls().Serve(sh, func(err error) {
		select {
		case failure <- err:
		default: // the first counts
		}
	})
	if err != nil {
		return err
	}
	base := resident()
	setup, cancel := context.WithTimeout(c.Ctl.Alive, engine.SetupTimeout(sh))
	defer cancel()
	number, secret := c.Ticket()
	srv, err := tr.ListenCalls(setup, net.JoinHostPort(c.Host, "0"), CallConfig(sh, secret), svc)
	if err != nil {
		svc.Close()
		return engine.TransportError("listen for calls", err)
	}
	addr := srv.Addr()
	defer func() {
		if e := srv.Close(); e != nil {
			c.Log.Debug("close server of calls", "err", e) // the clients' calls saw it
		}
		if e := svc.Close(); err == nil && e != nil {
			err = engine.Failed("end service", e)
		}
	}()
	listens := &engine.Listening{Addr: addr, Elsewhere: noHostPort(addr) || engine.Elsewhere(c.Host, addr),
		Token: number, Resident: base}
	for _, m := range []*engine.Message{{Type: engine.MsgListening, Listening: listens}, {Type: engine.MsgConnected}} {
		if err := c.Ctl.Send(engine.ReplyWait, m); err != nil {
			return err
		}
	}
	return c.Phases(ctx, func(ph *engine.PhaseStart) error { return callPhase(c, ctx, svc, failure, ph) })
}

func callPhase(c *engine.ServedClient, ctx context.Context, svc engine.CallService, failure <-chan error,
	ph *engine.PhaseStart) error {
	rep := &engine.PhaseReport{}
	if ph.Generation == engine.GenMemory {
		rep.Resident = resident()
	}
	if err := svc.Begin(ph.Generation); err != nil {
		return err
	}
	collectAsUsed()
	changes := engine.CountersAround(c.Counters, ph.Generation)
	r := &engine.Phase{Done: make(chan struct{})}
	halted := make(chan struct{})
	r.Cancel = sync.OnceFunc(func() { close(halted) })
	before := engine.ReadUsage()
	go func() {
		select {
		case <-halted:
		case r.Out.Err = <-failure:
		}
		r.Out.Usage = engine.ReadUsage().Minus(before)
		close(r.Done)
	}()
	stop, err := c.UntilStop(ctx, r)
	r.Halt(engine.StopSoon)
	out := r.Wait()
	if err == nil {
		err = out.Err
	}
	ops, wrong := svc.End()
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	}
	rep.Operations, rep.CPUSeconds, rep.Collections, rep.Allocations = ops, out.Usage.CPU.Seconds(),
		out.Usage.Collections, out.Usage.Allocations
	rep.Procs, rep.Sessions, rep.Counters, rep.Verified = runtime.GOMAXPROCS(0), int(c.Server.Clients()), changes(),
		stop.Check
	return c.Ctl.Send(engine.ReplyWait, &engine.Message{Type: engine.MsgReport, Report: rep})
}

// noHostPort tells names of one machine or process, such as that of an abstract unix
// socket, from "host:port".
func noHostPort(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err != nil
}
