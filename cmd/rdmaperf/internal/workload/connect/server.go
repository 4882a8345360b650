package connect

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// serve serves a point of connection set-up: it listens for its whole time, and in every phase takes what comes.
func serve(ctx context.Context, s *engine.Serve, sh *engine.Shape) error {
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	cfg := sh.Config
	cfg.Events = s.Stack.Caps().Events
	l, token, err := s.Listen(ctx, cfg)
	if err != nil {
		return err
	}
	defer l.Close()
	if !cfg.Events {
		defer engine.ReserveProcs(sh.QPs)()
	}
	return s.Phases(ctx, func(ph *engine.PhaseStart) error {
		defer engine.HoldCollector()()
		changes := s.Counters(ph)
		h := &hosts{listener: l, events: cfg.Events, token: token, tenants: make([]context.CancelFunc, sh.QPs),
			places: make(chan struct{}, 2*sh.QPs)}
		r := h.start()
		_, err := s.UntilStop(ctx, ph, r)
		r.Halt(engine.StopSoon)
		out := r.Wait()
		if err = cmp.Or(err, out.Err); err != nil {
			return err
		}
		return s.Report(out, engine.PhaseReport{Counters: changes()})
	})
}

// hosts takes connections and keeps each until the client's thread that made it has the next one. One goroutine
// accepts, as one listening thread does; each connection has one of its own, because a transport may need somebody's
// polls to answer. It sleeps where that is possible: spinning would take the CPUs from the one that accepts. A client
// that opens more than it said waits: at most places connections exist.
type hosts struct {
	listener transports.Listener
	events   bool // Wait works
	token    []byte
	tenants  []context.CancelFunc // by the client's thread: ends its connection here
	places   chan struct{}
	group    sync.WaitGroup
}

// start takes connections until the run is halted.
func (h *hosts) start() *engine.Phase {
	r := &engine.Phase{Done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.Cancel = cancel
	before := engine.ReadUsage()
	go func() {
		var o engine.Outcome
		for ctx.Err() == nil && o.Err == nil {
			o.Ops, o.Err = h.take(ctx, o.Ops)
		}
		if ctx.Err() != nil {
			o.Err = nil // told to
		}
		cancel() // and with it every tenant
		h.group.Wait()
		o.Usage = engine.ReadUsage().Minus(before)
		r.Out = o
		close(r.Done)
	}()
	return r
}

// take accepts one connection and counts it, unless it is an unknown client's.
func (h *hosts) take(ctx context.Context, n int64) (int64, error) {
	select {
	case h.places <- struct{}{}:
	case <-ctx.Done():
		return n, ctx.Err()
	}
	s, hello, err := h.listener.Accept(ctx)
	if err != nil {
		<-h.places
		return n, engine.TransportError("accept session", err)
	}
	index, ok := engine.HelloIndex(hello, h.token, len(h.tenants))
	if !ok {
		s.Close()
		<-h.places
		return n, nil
	}
	if leave := h.tenants[index]; leave != nil {
		leave()
	}
	stay, leave := context.WithCancel(ctx)
	h.tenants[index] = leave
	h.group.Go(func() {
		defer func() { <-h.places }()
		defer leave()
		h.host(stay, s)
	})
	return n + 1, nil
}

// host serves a connection until it ends or its place is needed, and closes it.
func (h *hosts) host(ctx context.Context, s transports.Session) {
	var done [4]transports.Done
	for ctx.Err() == nil {
		n, err := s.Poll(done[:])
		if err == nil && n == 0 && h.events {
			err = s.Wait(ctx)
		}
		if err != nil {
			break // the peer closed it, which is what it is for
		}
		runtime.Gosched()
	}
	s.Close() // what is left of a connection that the peer closed is no failure
}
