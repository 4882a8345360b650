package connect

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

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

// hosts takes connections and keeps each until the client's thread has the next one. Each has a goroutine, because a
// transport may need polls to answer; it sleeps where it can, to leave the CPU to the one that accepts. A client that
// opens more than it said waits for places.
type hosts struct {
	listener transports.Listener
	events   bool // Wait works
	token    []byte
	tenants  []context.CancelFunc // by the client's thread: ends its connection here
	places   chan struct{}
	group    sync.WaitGroup
}

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
