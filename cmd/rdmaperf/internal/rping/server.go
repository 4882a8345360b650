package rping

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Bounds of a server.
const (
	// ServerSize is the default buffer for one client, rping's own maximum.
	ServerSize = 64 << 10
	// DefaultMaxClients is how many clients are served at once by default.
	DefaultMaxClients = 64
	// silentGrace is how long a client may be silent before it gives way to a newcomer. Arbitrary: rping answers at once.
	silentGrace = 250 * time.Millisecond
	// acceptPause keeps a listener that fails again and again from using a CPU.
	acceptPause = 100 * time.Millisecond
)

// ServerConfig is a server. The zero value is its default.
type ServerConfig struct {
	Size int // largest ping taken, bytes; 0 is ServerSize
	// served at once; then the longest silent gives way to the next, or that one waits; 0 is DefaultMaxClients
	MaxClients int
	Timeout    time.Duration // of each wait for a client; 0 is DefaultTimeout
	// OnPing sees the bytes that were read from a client, one call at a time; they are its own until it returns.
	OnPing func(data []byte)
	Log    *slog.Logger // clients at info and warn level, steps at debug; nil is silent
}

func (c *ServerConfig) setDefaults() error {
	if c.Size = cmp.Or(c.Size, ServerSize); c.Size < MinSize || c.Size > ServerSize {
		return fmt.Errorf("size %d: want %d to %d bytes: %w", c.Size, MinSize, ServerSize, rdma.ErrInvalid)
	}
	if c.MaxClients <= 0 {
		c.MaxClients = DefaultMaxClients
	}
	c.Timeout, c.Log = defaults(c.Timeout, c.Log)
	return nil
}

type server struct {
	dev  rdma.Device
	mem  *memory
	cfg  ServerConfig
	echo sync.Mutex // around OnPing

	mu      sync.Mutex
	clients map[*endpoint]*seat // under mu: those being served
}

type seat struct {
	waits time.Time // since when the peer is waited for
	leave context.CancelCauseFunc
}

var errGivesWay = errors.New("idle, and closed for another client")

func (s *server) giveWay() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at *endpoint
	for e, c := range s.clients {
		if at == nil || c.waits.Before(s.clients[at].waits) {
			at = e
		}
	}
	if at == nil || time.Since(s.clients[at].waits) < silentGrace {
		return false
	}
	s.clients[at].leave(errGivesWay)
	delete(s.clients, at)
	return true
}

// place waits until a client may be served; as long as all places are taken, silent ones are ended.
func (s *server) place(ctx context.Context, places chan struct{}) bool {
	tick := time.NewTicker(silentGrace / 5)
	defer tick.Stop()
	asked := false
	for {
		select {
		case places <- struct{}{}:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
			asked = asked || s.giveWay() // one for each newcomer
		}
	}
}

// Serve answers pings from ln until ctx ends or ln is closed, then ends all connections and returns nil. A bad client
// loses its own connection alone. ln stays the caller's.
func Serve(ctx context.Context, dev rdma.Device, ln rdma.Listener, cfg ServerConfig) (err error) {
	if err := cfg.setDefaults(); err != nil {
		return err
	}
	if err := missing(dev, rdma.Ops(rdma.OpSend, rdma.OpRead, rdma.OpWrite), false); err != nil {
		return err
	}
	mem, err := newMemory(dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mem.close()) }()
	s := &server{dev: dev, mem: mem, cfg: cfg, clients: map[*endpoint]*seat{}}
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	places := make(chan struct{}, cfg.MaxClients)
	for {
		req, err := ln.Accept(ctx)
		switch {
		case err == nil:
			if !s.place(ctx, places) {
				_ = s.reject(context.WithoutCancel(ctx), req) // the server ends
				return nil
			}
			clients.Go(func() {
				s.client(ctx, req)
				<-places
			})
			continue
		case ctx.Err() != nil || errors.Is(err, rdma.ErrClosed):
			return nil
		}
		cfg.Log.Warn("accept", "err", err)
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
		}
	}
}

func (s *server) client(ctx context.Context, req rdma.ConnRequest) {
	log := s.cfg.Log.With("client", req.RemoteAddr())
	pings, err := s.converse(ctx, req, log)
	switch {
	case err == nil:
		log.Info("client disconnected", "pings", pings)
	case ctx.Err() != nil:
		log.Info("server ends", "pings", pings)
	default:
		log.Warn("client dropped", "pings", pings, "err", err)
	}
}

// converse answers a client's pings; nil is a client that disconnected between two of them.
func (s *server) converse(ctx context.Context, req rdma.ConnRequest, log *slog.Logger) (pings int, err error) {
	sinkAccess := rdma.LocalWrite
	if s.dev.Caps().Features.Has(rdma.FeatSinkNeedsRemoteWrite) {
		sinkAccess |= rdma.RemoteWrite
	}
	e, err := newEndpoint(s.mem, sinkAccess, s.cfg.Timeout, false)
	if err != nil {
		return 0, errors.Join(err, s.reject(ctx, req))
	}
	defer func() { err = errors.Join(err, e.close()) }()
	data, err := e.register(s.cfg.Size, sinkAccess)
	if err != nil {
		return 0, errors.Join(err, s.reject(ctx, req))
	}
	if err = s.accept(ctx, req, e, log); err != nil {
		return 0, err
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	c := &seat{waits: time.Now(), leave: leave}
	s.mu.Lock()
	s.clients[e] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.clients, e)
		s.mu.Unlock()
		if cause := context.Cause(ctx); errors.Is(cause, errGivesWay) {
			err = cause
		}
	}()
	for {
		a, err := e.recv(ctx, "advertisement of a source")
		if errors.Is(err, errEnded) {
			log.Debug("connection ended", "err", err)
			return pings, nil
		}
		if err == nil {
			err = s.pong(ctx, e, data, a, log)
		}
		switch {
		case err == nil:
			pings++
			s.mu.Lock()
			c.waits = time.Now()
			s.mu.Unlock()
			continue
		case errors.Is(err, errEnded):
			return pings, fmt.Errorf("%w: %w", ErrPeerGone, err)
		}
		// The peer's stack learns at once that nothing more comes.
		_ = e.disconnect(ctx)
		return pings, err
	}
}

func (s *server) accept(ctx context.Context, req rdma.ConnRequest, e *endpoint, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	got, err := req.Accept(ctx, e.qp, rdma.ConnParam{IRD: 1, ORD: 1, RNRRetry: 7})
	if err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	if got.ORD < 1 {
		_ = e.disconnect(ctx)
		return &MalformedError{"the client allows no RDMA read (its IRD is 0)"}
	}
	log.Debug("accepted", "ird", got.IRD, "ord", got.ORD)
	return nil
}

func (s *server) reject(ctx context.Context, req rdma.ConnRequest) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	return req.Reject(ctx, nil)
}

// pong answers one ping whose source is a; the peer's sizes are checked before they reach a work request.
func (s *server) pong(ctx context.Context, e *endpoint, data registration, a Advert, log *slog.Logger) error {
	log.Debug("source advertised", "addr", a.Addr, "rkey", a.RKey, "size", a.Size)
	if a.Size == 0 || uint64(a.Size) > uint64(data.buf.Len()) {
		return &MalformedError{fmt.Sprintf("source of %d bytes, want 1 to %d", a.Size, data.buf.Len())}
	}
	if err := e.transfer(ctx, rdma.OpRead, data, a, a.Size); err != nil {
		return err
	}
	if s.cfg.OnPing != nil {
		s.echo.Lock()
		s.cfg.OnPing(data.buf.Bytes()[:a.Size])
		s.echo.Unlock()
	}
	if err := e.send(ctx, Advert{}); err != nil {
		return err
	}
	sink, err := e.recv(ctx, "advertisement of a sink")
	if err != nil {
		return err
	}
	log.Debug("sink advertised", "addr", sink.Addr, "rkey", sink.RKey, "size", sink.Size)
	if sink.Size < a.Size {
		return &MalformedError{fmt.Sprintf("sink of %d bytes for a ping of %d", sink.Size, a.Size)}
	}
	if err := e.transfer(ctx, rdma.OpWrite, data, sink, a.Size); err != nil {
		return err
	}
	return e.send(ctx, Advert{})
}
