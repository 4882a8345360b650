package bench

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"net"
	"runtime"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports"
)

// connectPoint serves a point of connection set-up: it listens for its whole time,
// and in every phase takes what comes.
func (c *clientSession) connectPoint(ctx context.Context, sh *Shape) error {
	cfg := sh.config()
	cfg.Events = c.tr.Caps().Events
	l, err := c.tr.Listen(c.ctl.alive, net.JoinHostPort(c.host, "0"), cfg)
	if err != nil {
		return transportError("listen for sessions", err)
	}
	defer l.Close()
	token := make([]byte, tokenLen)
	rand.Read(token) // never fails (crypto/rand)
	for _, m := range []*message{{Type: msgListening, Listening: &listening{Addr: l.Addr(), Elsewhere: elsewhere(c.host, l.Addr()), Token: token}}, {Type: msgConnected}} {
		if err := c.ctl.send(replyWait, m); err != nil {
			return err
		}
	}
	if !cfg.Events {
		reserveProcs(sh.QPs)
		defer releaseProcs(sh.QPs)
	}
	return c.phases(ctx, func(ph *phaseStart) error { return c.connectPhase(ctx, sh, l, token, ph) })
}

func (c *clientSession) connectPhase(ctx context.Context, sh *Shape, l transports.Listener, token []byte, ph *phaseStart) error {
	release := holdCollector()
	defer release()
	changes := countersAround(c.counters, ph.Generation)
	h := &hosts{listener: l, events: c.tr.Caps().Events, token: token, tenants: make([]context.CancelFunc, sh.QPs), rooms: make(chan struct{}, 2*sh.QPs)}
	r := h.start()
	_, err := c.untilStop(ctx, r)
	r.halt(stopSoon)
	out := r.wait()
	switch {
	case err != nil:
		return err
	case out.err != nil:
		return out.err
	}
	return c.ctl.send(replyWait, &message{Type: msgReport, Report: &phaseReport{Operations: out.ops, CPUSeconds: out.usage.cpu.Seconds(),
		Collections: out.usage.collections, Allocations: out.usage.allocations, Procs: runtime.GOMAXPROCS(0),
		Sessions: int(c.server.clients.Load()), Counters: changes()}})
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
func (h *hosts) start() *run {
	r := &run{done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	before := readUsage()
	go func() {
		var o outcome
		for ctx.Err() == nil && o.err == nil {
			o.ops, o.err = h.take(ctx, o.ops)
		}
		if ctx.Err() != nil {
			o.err = nil // told to
		}
		cancel() // and with it every tenant
		h.group.Wait()
		o.usage = readUsage().minus(before)
		r.out = o
		close(r.done)
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
		return n, transportError("accept session", err)
	}
	var index uint32
	ok := len(hello) >= tokenLen+4 && subtle.ConstantTimeCompare(hello[:tokenLen], h.token) == 1
	if ok {
		index = binary.BigEndian.Uint32(hello[tokenLen:])
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
