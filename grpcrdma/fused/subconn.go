package fused

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

// subConn is a fused connection for a load balancing policy, made when that asks for it and again when it is lost.
type subConn struct {
	balancer.SubConn // nil: for methods that gRPC may add
	p                *policy
	listener         func(balancer.SubConnState)
	ctx              context.Context // ends with the sub-connection
	cancel           context.CancelFunc

	mu     sync.Mutex
	addrs  []resolver.Address
	state  connectivity.State
	s      *clientSession // while Ready
	failed int            // attempts in a row

	// Used in serial.
	reported  connectivity.State
	healthy   func() // ends the health watch of the state that was reported last
	producers map[balancer.ProducerBuilder]*producer
}

type producer struct {
	balancer.Producer
	users int
	close func()
}

// set changes the state and reports it to the policy. The caller holds mu.
func (sc *subConn) set(state connectivity.State, err error) {
	sc.state = state
	sc.p.b.run.do(func() {
		for _, p := range sc.producers {
			p.users = 0
			p.close()
		}
		clear(sc.producers)
		sc.reported = state
		sc.healthy()
		st := balancer.SubConnState{ConnectivityState: state, ConnectionError: err}
		if sc.listener != nil {
			sc.listener(st)
		} else {
			sc.p.bal.UpdateSubConnState(sc, st)
		}
	})
}

func (sc *subConn) Connect() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.state == connectivity.Idle && sc.p.b.begin(sc.connect) {
		sc.set(connectivity.Connecting, nil)
	}
}

// connect makes the connection and watches it until it is lost, or waits until the next attempt is due.
func (sc *subConn) connect() {
	sc.mu.Lock()
	addrs := sc.addrs
	sc.mu.Unlock()
	s, err := sc.dial(addrs)
	sc.mu.Lock()
	if sc.ctx.Err() != nil {
		sc.mu.Unlock()
		if s != nil {
			s.close(net.ErrClosed)
		}
		return
	}
	if err == nil {
		sc.s, sc.failed = s, 0
		sc.set(connectivity.Ready, nil)
		sc.mu.Unlock()
		sc.watch(s)
		return
	}
	sc.set(connectivity.TransientFailure, err)
	pause := sc.p.b.pause(sc.failed)
	sc.failed++
	sc.mu.Unlock()
	sc.p.b.resolveNow()
	sleep(sc.ctx, pause)
	sc.idle()
}

func (sc *subConn) idle() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.s = nil
	if sc.state != connectivity.Shutdown {
		sc.set(connectivity.Idle, nil)
	}
}

func (sc *subConn) dial(addrs []resolver.Address) (s *clientSession, err error) {
	b := sc.p.b
	for _, a := range addrs {
		ctx, cancel := context.WithTimeout(sc.ctx, 2*b.cfg.ConnectionTimeout)
		var conn net.Conn
		if conn, err = b.dial(ctx, a.Addr); err == nil {
			cfg := b.cfg
			if b.ch.cfg.Authority == "" {
				cfg.serverName = a.ServerName
			}
			s, err = dialSession(ctx, conn, &cfg)
		}
		cancel()
		if err == nil {
			return s, nil
		}
		err = fmt.Errorf("fused: connect to %s: %w", a.Addr, err)
		if sc.ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// watch waits for the end of a connection. One that only takes no more calls ends after the last.
func (sc *subConn) watch(s *clientSession) {
	select {
	case <-s.done:
	case <-s.draining:
	case <-sc.ctx.Done():
	}
	sc.idle()
	sc.p.b.resolveNow()
	t := time.NewTicker(drainLook)
	defer t.Stop()
	for s.cause() == nil && s.live() > 0 {
		select {
		case <-t.C:
		case <-s.done:
		case <-sc.p.b.ctx.Done():
			s.endCalls(errClosed)
			s.fail(net.ErrClosed)
		}
	}
	s.close(net.ErrClosed)
}

// drainLook is how often a draining connection is checked for the end of its last call. Arbitrary.
const drainLook = 20 * time.Millisecond

func (sc *subConn) ready() *clientSession {
	sc.mu.Lock()
	s := sc.s
	sc.mu.Unlock()
	if s == nil {
		return nil
	}
	if s.check(); !s.takesCalls() {
		return nil
	}
	return s
}

// Shutdown ends the sub-connection. Its calls go on.
func (sc *subConn) Shutdown() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.state == connectivity.Shutdown {
		return
	}
	sc.cancel()
	sc.s = nil
	sc.set(connectivity.Shutdown, nil)
}

func (sc *subConn) UpdateAddresses(addrs []resolver.Address) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.addrs = addrs
	if sc.s == nil {
		return
	}
	at := sc.s.conn.RemoteAddr().String()
	if !slices.ContainsFunc(addrs, func(a resolver.Address) bool { return a.Addr == at }) {
		sc.s.drained.Do(func() { close(sc.s.draining) })
	}
}

// RegisterHealthListener reports the health of the service in the service config; without one it is well.
func (sc *subConn) RegisterHealthListener(f func(balancer.SubConnState)) {
	b := sc.p.b
	b.run.do(func() {
		sc.healthy()
		if f == nil || sc.reported != connectivity.Ready {
			return
		}
		conf := b.config.Load()
		if conf == nil || conf.health == nil {
			f(balancer.SubConnState{ConnectivityState: connectivity.Ready})
			return
		}
		ctx, cancel := context.WithCancel(sc.ctx)
		sc.healthy = cancel
		tell := func(st balancer.SubConnState) {
			b.run.do(func() {
				if ctx.Err() == nil {
					f(st)
				}
			})
		}
		if !b.begin(func() { sc.watchHealth(ctx, *conf.health, tell) }) {
			cancel()
		}
	})
}

// watchHealth reports a service's health until ctx ends (grpc doc/health-checking.md, gRFC A17). A server without the
// health service is well.
func (sc *subConn) watchHealth(ctx context.Context, service string, tell func(balancer.SubConnState)) {
	tell(balancer.SubConnState{ConnectivityState: connectivity.Connecting})
	for failed := 0; ctx.Err() == nil; failed++ {
		w, err := healthpb.NewHealthClient(sc).Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
		for err == nil {
			var r *healthpb.HealthCheckResponse
			if r, err = w.Recv(); err != nil {
				break
			}
			failed = 0
			if r.Status == healthpb.HealthCheckResponse_SERVING {
				tell(balancer.SubConnState{ConnectivityState: connectivity.Ready})
			} else {
				tell(balancer.SubConnState{ConnectivityState: connectivity.TransientFailure,
					ConnectionError: fmt.Errorf("fused: service %q is %v", service, r.Status)})
			}
		}
		if status.Code(err) == codes.Unimplemented {
			tell(balancer.SubConnState{ConnectivityState: connectivity.Ready})
			return
		}
		if ctx.Err() != nil {
			return
		}
		tell(balancer.SubConnState{ConnectivityState: connectivity.TransientFailure,
			ConnectionError: fmt.Errorf("fused: watch the health of %q: %w", service, err)})
		sleep(ctx, sc.p.b.pause(failed))
	}
}

func (sc *subConn) GetOrBuildProducer(pb balancer.ProducerBuilder) (balancer.Producer, func()) {
	p := sc.producers[pb]
	if p == nil {
		p = &producer{}
		p.Producer, p.close = pb.Build(sc)
		sc.producers[pb] = p
	}
	p.users++
	return p.Producer, sync.OnceFunc(func() {
		sc.p.b.run.do(func() {
			if p.users--; p.users == 0 {
				delete(sc.producers, pb)
				p.close()
			}
		})
	})
}

func (sc *subConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return sc.only().invoke(ctx, method, args, reply, nil, opts...)
}

func (sc *subConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return sc.only().NewStream(ctx, desc, method, opts...)
}

var _ grpc.ClientConnInterface = (*subConn)(nil)

// only is a channel of this connection alone, without interceptors.
func (sc *subConn) only() *Channel {
	cfg := sc.p.b.cfg
	cfg.UnaryClient, cfg.StreamClient = nil, nil
	return &Channel{cfg: cfg, obs: sc.p.b.ch.obs, fixed: sc}
}

var errNotReady = status.Error(codes.Unavailable, "fused: the sub-connection is not ready")

// pause is the back-off after an attempt that failed after n others (grpc doc/connection-backoff.md).
func (b *balanced) pause(n int) time.Duration {
	c := b.backoff
	d := float64(c.BaseDelay)
	for range n {
		if d *= c.Multiplier; d >= float64(c.MaxDelay) {
			break
		}
	}
	d = min(d, float64(c.MaxDelay)) * (1 + c.Jitter*(rand.Float64()*2-1))
	return time.Duration(max(d, 0))
}
