package fused

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	estats "google.golang.org/grpc/experimental/stats"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

// balanced puts the calls of a channel under a resolver and a load balancing policy, as grpc-go's ClientConn does.
type balanced struct {
	ch       *Channel
	cfg      Config // of connections
	dial     func(context.Context, string) (net.Conn, error)
	target   resolver.Target
	builder  resolver.Builder
	backoff  backoff.Config
	standard *serviceConfig

	start    sync.Once
	resolved chan struct{} // closed when the resolver has reported once
	first    sync.Once
	config   atomic.Pointer[serviceConfig] // in use
	pickers  atomic.Pointer[pickers]

	ctx    context.Context
	cancel context.CancelFunc
	run    serial // calls of the policy
	asks   serial // calls of the resolver
	res    resolver.Resolver
	work   sync.WaitGroup
	mu     sync.Mutex
	closed bool
	cur    *policy
	next   *policy // takes over when it has connections, or cur has none
}

type pickers struct {
	balancer.Picker // nil at first
	changed         chan struct{}
	state           connectivity.State
}

// policy is a load balancing policy at work, and its balancer.ClientConn.
type policy struct {
	balancer.ClientConn // nil: for methods that gRPC may add
	b                   *balanced
	builder             balancer.Builder
	bal                 balancer.Balancer
	state               balancer.State // guarded by b.mu
}

// begin gives f a goroutine that close joins; it returns false after close.
func (b *balanced) begin(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.work.Go(f)
	return true
}

func (b *balanced) buildResolver() {
	r, err := b.builder.Build(b.target, &resolving{b: b}, resolver.BuildOptions{DialCreds: b.cfg.Creds,
		Dialer: b.dial, Authority: b.cfg.Authority, DisableServiceConfig: b.cfg.NoServiceConfig,
		MetricsRecorder: estats.UnimplementedMetricsRecorder{}})
	if err != nil {
		b.unresolved(fmt.Errorf("build the resolver of %v: %w", &b.target.URL, err))
		return
	}
	b.res = r
}

func (b *balanced) resolveNow() {
	b.asks.do(func() {
		if b.res != nil {
			b.res.ResolveNow(resolver.ResolveNowOptions{})
		}
	})
}

func (b *balanced) update(s resolver.State) error {
	defer b.first.Do(func() { close(b.resolved) })
	if s.Endpoints == nil {
		for _, a := range s.Addresses {
			e := resolver.Endpoint{Addresses: []resolver.Address{a}, Attributes: a.BalancerAttributes}
			e.Addresses[0].BalancerAttributes = nil
			s.Endpoints = append(s.Endpoints, e)
		}
	}
	var bad error
	switch {
	case b.cfg.NoServiceConfig || s.ServiceConfig == nil:
		if b.cfg.NoServiceConfig || b.config.Load() == nil {
			b.config.Store(b.standard)
		}
	default:
		sc, ok := s.ServiceConfig.Config.(*serviceConfig)
		if err := s.ServiceConfig.Err; err == nil && ok {
			b.config.Store(sc)
			break
		} else if err == nil {
			s.ServiceConfig.Err = errNotOurs
		}
		bad = balancer.ErrBadResolverState
		if b.config.Load() == nil {
			b.publish(balancer.State{ConnectivityState: connectivity.TransientFailure,
				Picker: base.NewErrPicker(status.Errorf(codes.Unavailable, "fused: error parsing service config: %v",
					s.ServiceConfig.Err))})
			return bad
		}
	}
	done := make(chan error, 1)
	if !b.run.do(func() { done <- b.tell(s) }) {
		return nil
	}
	if err := <-done; bad == nil {
		bad = err
	}
	return bad
}

// tell gives the policy, or the new one that the service config names, what the resolver found. It runs in serial.
func (b *balanced) tell(s resolver.State) error {
	sc := b.config.Load()
	b.mu.Lock()
	p := cmp.Or(b.next, b.cur)
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	if p == nil || p.builder.Name() != sc.policy.Name() {
		old := b.next
		p = &policy{b: b, builder: sc.policy, state: balancer.State{ConnectivityState: connectivity.Connecting}}
		if b.cur == nil {
			b.cur = p
		} else {
			b.next = p
		}
		b.mu.Unlock()
		if old != nil {
			old.bal.Close()
		}
		p.bal = sc.policy.Build(p, balancer.BuildOptions{DialCreds: b.cfg.Creds, Dialer: b.dial,
			Authority: b.cfg.Authority, CustomUserAgent: b.cfg.UserAgent, Target: b.target})
	} else {
		b.mu.Unlock()
	}
	return p.bal.UpdateClientConnState(balancer.ClientConnState{ResolverState: s, BalancerConfig: sc.policyConfig})
}

func (b *balanced) unresolved(err error) {
	defer b.first.Do(func() { close(b.resolved) })
	if b.config.Load() == nil {
		b.config.Store(b.standard)
	}
	b.run.do(func() {
		b.mu.Lock()
		p := cmp.Or(b.next, b.cur)
		b.mu.Unlock()
		if p == nil { // nobody has made one, and a policy without addresses says the same
			b.publish(balancer.State{ConnectivityState: connectivity.TransientFailure,
				Picker: base.NewErrPicker(fmt.Errorf("fused: name resolver error: %w", err))})
			return
		}
		p.bal.ResolverError(err)
	})
}

func (b *balanced) publish(s balancer.State) {
	old := b.pickers.Swap(&pickers{Picker: s.Picker, changed: make(chan struct{}), state: s.ConnectivityState})
	close(old.changed)
}

func (p *policy) UpdateState(s balancer.State) {
	b := p.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || p != b.cur && p != b.next {
		return
	}
	p.state = s
	if b.next != nil && (b.next.state.ConnectivityState != connectivity.Connecting ||
		b.cur.state.ConnectivityState != connectivity.Ready) {
		old := b.cur
		b.cur, b.next = b.next, nil
		b.run.do(old.bal.Close)
		if b.cur.state.Picker != nil {
			b.publish(b.cur.state)
		}
		return
	}
	if p == b.cur {
		b.publish(s)
	}
}

func (p *policy) NewSubConn(addrs []resolver.Address, o balancer.NewSubConnOptions) (balancer.SubConn, error) {
	if len(addrs) == 0 {
		return nil, errors.New("fused: a sub-connection without an address")
	}
	sc := &subConn{p: p, listener: o.StateListener, addrs: addrs, healthy: func() {},
		producers: map[balancer.ProducerBuilder]*producer{}}
	sc.ctx, sc.cancel = context.WithCancel(p.b.ctx)
	return sc, nil
}

func (p *policy) RemoveSubConn(sc balancer.SubConn) { sc.Shutdown() }

func (p *policy) UpdateAddresses(sc balancer.SubConn, addrs []resolver.Address) {
	sc.UpdateAddresses(addrs)
}

func (p *policy) ResolveNow(resolver.ResolveNowOptions) { p.b.resolveNow() }

func (p *policy) Target() string { return p.b.target.String() }

func (p *policy) MetricsRecorder() estats.MetricsRecorder {
	return estats.UnimplementedMetricsRecorder{}
}

type resolving struct {
	resolver.ClientConn // nil: for methods that gRPC may add
	b                   *balanced
}

func (r *resolving) UpdateState(s resolver.State) error { return r.b.update(s) }

func (r *resolving) ReportError(err error) { r.b.unresolved(err) }

func (r *resolving) NewAddress(addrs []resolver.Address) {
	r.b.update(resolver.State{Addresses: addrs})
}

func (b *balanced) close() {
	b.mu.Lock()
	was := b.closed
	b.closed = true
	policies := []*policy{b.cur, b.next}
	b.mu.Unlock()
	b.asks.close(func() {
		if b.res != nil {
			b.res.Close()
		}
	})
	b.run.close(func() {
		for _, p := range policies {
			if p != nil {
				p.bal.Close()
			}
		}
	})
	b.cancel()
	if !was {
		b.publish(balancer.State{ConnectivityState: connectivity.Shutdown, Picker: base.NewErrPicker(errClosed)})
	}
	b.work.Wait()
}
