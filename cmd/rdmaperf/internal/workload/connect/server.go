package connect

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"net"
	"runtime"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// connectPoint serves a point of connection set-up: it listens for its whole time,
// and in every phase takes what comes.
func connectPoint(c *engine.ServedClient, ctx context.Context, sh *engine.Shape) error {
	cfg := sh.Config()
	cfg.Events = c.Tr.Caps().Events
	tr, err := engine.SessionsOf(c.Tr)
	if err != nil {
		return err
	}
	token := make([]byte, engine.TokenLen)
	rand.Read(token) // never fails (crypto/rand)
	if len(c.Server.Token) > 0 {
		cfg.Secret = engine.SessionToken(c.Server.Token, token)
	}
	l, err := tr.Listen(c.Ctl.Alive, net.JoinHostPort(c.Host, "0"), cfg)
	if err != nil {
		return engine.TransportError("listen for sessions", err)
	}
	defer l.Close()
	for _, m := range []*engine.Message{{Type: engine.MsgListening, Listening: &engine.Listening{Addr: l.Addr(), Elsewhere: engine.Elsewhere(c.Host, l.Addr()), Token: token}}, {Type: engine.MsgConnected}} {
		if err := c.Ctl.Send(engine.ReplyWait, m); err != nil {
			return err
		}
	}
	if !cfg.Events {
		defer engine.ReserveProcs(sh.QPs)()
	}
	return c.Phases(ctx, func(ph *engine.PhaseStart) error {
		return connectPhase(c, ctx, sh, l, engine.SessionToken(c.Server.Token, token), ph)
	})
}

func connectPhase(c *engine.ServedClient, ctx context.Context, sh *engine.Shape, l transports.Listener, token []byte, ph *engine.PhaseStart) error {
	release := engine.HoldCollector()
	defer release()
	changes := engine.CountersAround(c.Counters, ph.Generation)
	h := &hosts{listener: l, events: c.Tr.Caps().Events, token: token, tenants: make([]context.CancelFunc, sh.QPs), rooms: make(chan struct{}, 2*sh.QPs)}
	r := h.start()
	_, err := c.UntilStop(ctx, r)
	r.Halt(engine.StopSoon)
	out := r.Wait()
	switch {
	case err != nil:
		return err
	case out.Err != nil:
		return out.Err
	}
	return c.Ctl.Send(engine.ReplyWait, &engine.Message{Type: engine.MsgReport, Report: &engine.PhaseReport{Operations: out.Ops, CPUSeconds: out.Usage.CPU.Seconds(),
		Collections: out.Usage.Collections, Allocations: out.Usage.Allocations, Procs: runtime.GOMAXPROCS(0),
		Sessions: int(c.Server.Clients()), Counters: changes()}})
}

// hosts takes connections and keeps each until the client's thread that made it has
// the next one. One goroutine accepts, as one listening thread does; each connection
// has one of its own, because a transport may need somebody's polls to answer. It
// sleeps where that is possible: spinning would take the CPUs from the one that
// accepts. A client that opens more than it said waits: at most rooms connections
// exist.
type hosts struct {
	listener transports.Listener
	events   bool // Wait works
	token    []byte
	tenants  []context.CancelFunc // by the client's thread: ends its connection here
	rooms    chan struct{}
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

// take accepts one connection and counts it, unless it is a stranger's.
func (h *hosts) take(ctx context.Context, n int64) (int64, error) {
	select {
	case h.rooms <- struct{}{}:
	case <-ctx.Done():
		return n, ctx.Err()
	}
	s, hello, err := h.listener.Accept(ctx)
	if err != nil {
		<-h.rooms
		return n, engine.TransportError("accept session", err)
	}
	var index uint32
	ok := len(hello) >= engine.TokenLen+4 && subtle.ConstantTimeCompare(hello[:engine.TokenLen], h.token) == 1
	if ok {
		index = binary.BigEndian.Uint32(hello[engine.TokenLen:])
		ok = int64(index) < int64(len(h.tenants))
	}
	if !ok {
		s.Close()
		<-h.rooms
		return n, nil
	}
	if leave := h.tenants[index]; leave != nil {
		leave()
	}
	stay, leave := context.WithCancel(ctx)
	h.tenants[index] = leave
	h.group.Add(1)
	go func() {
		defer h.group.Done()
		defer func() { <-h.rooms }()
		defer leave()
		h.host(stay, s)
	}()
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
