package bench

import (
	"context"
	"net"
	"runtime"
	"sync"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
)

// callPoint serves a point of a workload of calls: a server of its own for the
// point's whole time, and phases that are watched while it works.
func (c *clientSession) callPoint(ctx context.Context, sh *Shape) (err error) {
	car, err := carrierOf(c.tr)
	if err != nil {
		return err
	}
	srv, err := car.NewServer()
	if err != nil {
		return transportError("make server", err)
	}
	failure := make(chan error, 1)
	svc, err := sh.calls().serve(sh, srv, func(err error) {
		select {
		case failure <- err:
		default: // the first counts
		}
	})
	if err != nil {
		return err
	}
	base := resident()
	setup, cancel := context.WithTimeout(c.ctl.alive, patience(sh))
	defer cancel()
	l, err := car.Listener(setup, net.JoinHostPort(c.host, "0"))
	if err != nil {
		svc.close()
		return transportError("listen for calls", err)
	}
	addr := l.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(l) // its end is Stop's, or is seen by the clients' calls
	}()
	defer func() {
		srv.Stop()
		<-served
		if e := svc.close(); err == nil && e != nil {
			err = failed("end service", e)
		}
	}()
	listens := &listening{Addr: addr, Elsewhere: carrier.NoHostPort(addr) || elsewhere(c.host, addr), Resident: base}
	for _, m := range []*message{{Type: msgListening, Listening: listens}, {Type: msgConnected}} {
		if err := c.ctl.send(replyWait, m); err != nil {
			return err
		}
	}
	return c.phases(ctx, func(ph *phaseStart) error { return c.callPhase(ctx, svc, failure, ph) })
}

func (c *clientSession) callPhase(ctx context.Context, svc callService, failure <-chan error, ph *phaseStart) error {
	rep := &phaseReport{}
	if ph.Generation == genMemory {
		rep.Resident = resident()
	}
	if err := svc.begin(ph.Generation); err != nil {
		return err
	}
	collectAsUsed()
	changes := countersAround(c.counters, ph.Generation)
	r := &run{done: make(chan struct{})}
	halted := make(chan struct{})
	r.cancel = sync.OnceFunc(func() { close(halted) })
	before := readUsage()
	go func() {
		select {
		case <-halted:
		case r.out.err = <-failure:
		}
		r.out.usage = readUsage().minus(before)
		close(r.done)
	}()
	stop, err := c.untilStop(ctx, r)
	r.halt(stopSoon)
	out := r.wait()
	if err == nil {
		err = out.err
	}
	ops, wrong := svc.end()
	switch {
	case err != nil:
		return err
	case wrong != nil:
		return wrong
	}
	rep.Operations, rep.CPUSeconds, rep.Collections, rep.Allocations = ops, out.usage.cpu.Seconds(), out.usage.collections, out.usage.allocations
	rep.Procs, rep.Sessions, rep.Counters, rep.Verified = runtime.GOMAXPROCS(0), int(c.server.clients.Load()), changes(), stop.Check
	return c.ctl.send(replyWait, &message{Type: msgReport, Report: rep})
}
