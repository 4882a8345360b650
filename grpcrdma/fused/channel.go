package fused

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// Config shapes either side. The zero value is the default.
type Config struct {
	UnaryClient   []grpc.UnaryClientInterceptor  // outermost first; they see a nil *grpc.ClientConn
	StreamClient  []grpc.StreamClientInterceptor // likewise
	UnaryServer   []grpc.UnaryServerInterceptor
	StreamServer  []grpc.StreamServerInterceptor
	StatsHandlers []stats.Handler
	// Creds secure every connection and identify the peer, as in grpc-go. With nil, a TLS connection identifies its peer.
	Creds credentials.TransportCredentials
	// Authority is the server's name for Creds and handlers, as grpc.WithAuthority; empty: that in Creds, or the address.
	Authority      string
	MaxRecvMsgSize int // bytes; 0 means 4 MiB, as gRPC
	MaxSendMsgSize int // bytes; 0 means 2 GiB
	// ConnectionTimeout bounds the handshake and the exchange of hellos; 0 means 10 s. A dial may take twice that.
	ConnectionTimeout time.Duration
	// StallLimit is how long a peer may take nothing before its connection is closed and its calls are Unavailable. 0
	// means 10 s, a negative value for ever; up to a quarter more passes before it is noticed.
	StallLimit time.Duration
	// MaxHeaderListSize is the longest metadata of a call and direction to accept, in bytes from 48 KiB; 0 means 16 MiB.
	MaxHeaderListSize int
	// UserAgent comes before this package's own, as grpc.WithUserAgent.
	UserAgent string
	// UnknownService handles calls of methods that are not registered, as grpc.UnknownServiceHandler.
	UnknownService grpc.StreamHandler
	// MaxConnectionAge is how long a server's connection takes calls, within a tenth, and MaxConnectionAgeGrace how long
	// calls in progress may last after that, as keepalive.ServerParameters; 0 means for ever.
	MaxConnectionAge, MaxConnectionAgeGrace time.Duration
	// MaxConnectionIdle is how long a server keeps a connection without a call; 0 means for ever.
	MaxConnectionIdle time.Duration
	// PingTime is how long a peer may be silent before it is pinged, within a quarter; 0 means never. PingTimeout is how
	// soon it must answer, from 10 ms; 0 means 20 s. A client pings while it has calls, with PingIdle always.
	PingTime, PingTimeout time.Duration
	PingIdle              bool
	// Window is how many bytes of unread messages a stream holds, from 64 KiB; 0 means 4 MiB.
	Window int
	// MaxStreams is how many calls a server accepts at once on a connection, 1 to 1048576; 0 means 1000. More calls wait.
	MaxStreams int
	// Of NewClient alone, as grpc.WithResolvers, grpc.WithDefaultServiceConfig (JSON), grpc.WithDisableServiceConfig,
	// grpc.WithDisableRetry and grpc.ConnectParams.Backoff.
	Resolvers       []resolver.Builder
	ServiceConfig   string
	NoServiceConfig bool
	NoRetry         bool
	Backoff         backoff.Config
	// Sinks bounds the lengths of the messages for which a connection grants registered memory, in bytes; 0 means 64 MiB,
	// a negative value none. The memory may be four times as long. Longer messages come through the ring.
	Sinks int

	serverName string // that credentials check; empty for the authority
}

// ErrConfig marks a configuration value outside its range.
var ErrConfig = errors.New("invalid fused configuration")

func (c Config) normal() (Config, error) {
	for _, v := range []struct {
		what                string
		to                  *int
		standard, low, high int
	}{
		{"largest received message", &c.MaxRecvMsgSize, defaultMaxRecv, 1, maxWindow},
		{"largest sent message", &c.MaxSendMsgSize, defaultMaxSend, 1, defaultMaxSend},
		{"longest metadata", &c.MaxHeaderListSize, defaultBlocks, maxBlocks, maxWindow},
		{"window", &c.Window, defaultWindow, minWindow, maxWindow},
		{"streams", &c.MaxStreams, defaultStreams, 1, maxStreams},
	} {
		if *v.to = cmp.Or(*v.to, v.standard); *v.to < v.low || *v.to > v.high {
			return c, fmt.Errorf("%s %d, want %d to %d: %w", v.what, *v.to, v.low, v.high, ErrConfig)
		}
	}
	c.ConnectionTimeout = cmp.Or(c.ConnectionTimeout, defaultConnect)
	c.StallLimit = cmp.Or(c.StallLimit, defaultStall)
	c.PingTimeout = cmp.Or(c.PingTimeout, defaultPingLimit)
	c.Sinks = cmp.Or(c.Sinks, defaultSinks)
	switch {
	case c.PingTime < 0 || c.PingTimeout < 10*time.Millisecond || c.MaxConnectionIdle < 0:
		return c, fmt.Errorf("pings after %v within %v, idle connections for %v: want none below 0, and 10 ms for an "+
			"answer: %w", c.PingTime, c.PingTimeout, c.MaxConnectionIdle, ErrConfig)
	case c.ConnectionTimeout < 0:
		return c, fmt.Errorf("connection timeout %v, want a positive one: %w", c.ConnectionTimeout, ErrConfig)
	case c.Sinks > maxSinks:
		return c, fmt.Errorf("sinks of %d bytes, want at most %d: %w", c.Sinks, maxSinks, ErrConfig)
	}
	return c, nil
}

// redialPause is how long fail-fast calls get the error of the last dial. Arbitrary: gRPC's first back-off is a second.
const redialPause = 100 * time.Millisecond

// Channel is a client: a grpc.ClientConnInterface for generated stubs. It connects at the first call and again when the
// connection is lost. Safe for concurrent use.
type Channel struct {
	dial func(context.Context) (net.Conn, error)
	cfg  Config
	obs  observers

	mu      sync.Mutex
	closed  bool
	cur     *clientSession
	old     []*clientSession // draining
	dialing chan struct{}    // closed when the dial in progress is over
	last    error            // of the last dial that failed
	until   time.Time        // it counts that long; zero behind a dial that did not fail
	cancel  context.CancelFunc

	lb    *balanced // of NewClient; then there is none of the above
	fixed *subConn  // the only connection there is
}

var _ grpc.ClientConnInterface = (*Channel)(nil)

var errClosed = status.Error(codes.Canceled, "fused: the channel is closed")

// NewChannel makes a client whose connections dial makes. ErrConfig for a configuration out of range.
func NewChannel(dial func(context.Context) (net.Conn, error), cfg Config) (*Channel, error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	return &Channel{dial: dial, cfg: cfg, obs: observers{cfg.StatsHandlers, true}}, nil
}

// session returns the connection, making it first if there is none. waited says that there was none.
func (c *Channel) session(ctx context.Context, failFast bool) (s *clientSession, waited bool, err error) {
	for ; ; waited = true {
		c.mu.Lock()
		c.prune()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, waited, errClosed
		case c.cur != nil:
			s := c.cur
			c.mu.Unlock()
			return s, waited, nil
		case time.Now().Before(c.until):
			last, wait := c.last, time.Until(c.until)
			c.mu.Unlock()
			if failFast {
				return nil, waited, status.Errorf(codes.Unavailable, "fused: %v", last)
			}
			if sleep(ctx, wait) != nil {
				return nil, waited, c.notConnected(ctx)
			}
			continue
		case c.dialing == nil:
			c.dialing = make(chan struct{})
			dctx, cancel := context.WithTimeout(context.Background(), 2*c.cfg.ConnectionTimeout)
			c.cancel = cancel
			go c.connect(dctx, cancel)
		}
		wait := c.dialing
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, waited, c.notConnected(ctx)
		}
	}
}

func (c *Channel) notConnected(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return waitEnded(ctx, c.last)
}

// sleep ends early, with an error, when ctx does.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func waitEnded(ctx context.Context, last error) error {
	code := status.FromContextError(ctx.Err()).Code()
	if last == nil {
		return status.Errorf(code, "fused: %v while waiting for a connection", ctx.Err())
	}
	return status.Errorf(code, "fused: %v while waiting for a connection; the last attempt: %v", ctx.Err(), last)
}

// connect makes the connection that calls wait for. It outlives the call that asked for it; Close ends and joins it.
func (c *Channel) connect(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	conn, err := c.dial(ctx)
	var s *clientSession
	if err == nil {
		s, err = dialSession(ctx, conn, &c.cfg)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.dialing)
	c.dialing = nil
	c.cur, c.until = s, time.Time{}
	if err != nil {
		c.last, c.until = err, time.Now().Add(redialPause)
	}
}

// prune retires connections that are lost or that the server drains. The caller holds mu.
func (c *Channel) prune() {
	if c.cur != nil {
		if c.cur.check(); !c.cur.takesCalls() {
			c.old = append(c.old, c.cur)
			c.cur = nil
		}
	}
	keep := c.old[:0]
	for _, s := range c.old {
		if s.cause() == nil && s.live() > 0 {
			keep = append(keep, s)
			continue
		}
		s.close(net.ErrClosed)
	}
	clear(c.old[len(keep):])
	c.old = keep
}

// Close ends all calls with Canceled and frees the connections. Idempotent.
func (c *Channel) Close() error {
	if c.lb != nil {
		c.lb.close()
		return nil
	}
	c.mu.Lock()
	c.closed = true
	if c.cancel != nil {
		c.cancel()
	}
	wait := c.dialing
	c.mu.Unlock()
	if wait != nil {
		<-wait
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur != nil {
		c.old = append(c.old, c.cur)
		c.cur = nil
	}
	for _, s := range c.old {
		s.endCalls(errClosed)
		s.close(net.ErrClosed)
	}
	c.old = nil
	return nil
}
