package fused

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// NewClient makes a channel to target, "scheme:///endpoint" as of grpc.NewClient, under grpc-go's own resolvers and
// load balancing policies and [Config.Resolvers]. dial connects to an address that the resolver found. It returns
// ErrConfig for a bad configuration, service config or target.
func NewClient(target string, dial func(ctx context.Context, addr string) (net.Conn, error), cfg Config) (*Channel,
	error) {
	cfg, err := cfg.normal()
	if err != nil {
		return nil, err
	}
	b := &balanced{cfg: cfg, dial: dial, backoff: cmp.Or(cfg.Backoff, backoff.DefaultConfig),
		resolved: make(chan struct{})}
	if b.target, b.builder, err = findResolver(target, cfg.Resolvers); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrConfig)
	}
	if b.standard, err = parseServiceConfig(cmp.Or(cfg.ServiceConfig, "{}")); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrConfig)
	}
	if b.cfg.Authority = b.authority(); b.cfg.Authority == "" {
		return nil, fmt.Errorf("target %q names no endpoint: %w", target, ErrConfig)
	}
	b.pickers.Store(&pickers{changed: make(chan struct{}), state: connectivity.Idle})
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.ch = &Channel{cfg: cfg, obs: observers{cfg.StatsHandlers, true}, lb: b}
	return b.ch, nil
}

// findResolver reads a target as grpc.NewClient does: without a known scheme it is a name for DNS.
func findResolver(target string, own []resolver.Builder) (resolver.Target, resolver.Builder, error) {
	builder := func(scheme string) resolver.Builder {
		for _, b := range own {
			if b.Scheme() == scheme {
				return b
			}
		}
		return resolver.Get(scheme)
	}
	bad := errors.New("no resolver knows its scheme, and none for dns is there")
	for _, text := range []string{target, "dns:///" + target} {
		u, err := url.Parse(text)
		if err != nil {
			bad = err
		} else if b := builder(u.Scheme); b != nil {
			return resolver.Target{URL: *u}, b, nil
		}
	}
	return resolver.Target{}, nil, fmt.Errorf("target %q: %w", target, bad)
}

// authority is the server's name, in grpc-go's order.
func (b *balanced) authority() string {
	if name := b.cfg.named(); name != "" {
		return name
	}
	if o, ok := b.builder.(resolver.AuthorityOverrider); ok {
		return o.OverrideAuthority(b.target)
	}
	end := b.target.Endpoint()
	if strings.HasPrefix(end, ":") {
		end = "localhost" + end
	}
	return escapeAuthority(end)
}

// escapeAuthority writes bytes that RFC 3986 §3.2 does not allow in an authority as %XX.
func escapeAuthority(s string) string {
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("-_.~!$&'()*+,;=:[]@", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", c)
	}
	return out.String()
}

func (r *resolving) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	sc, err := parseServiceConfig(text)
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	return &serviceconfig.ParseResult{Config: sc}
}

// State is that of the load balancing policy, or of the connection of NewChannel.
func (c *Channel) State() connectivity.State {
	if c.lb != nil {
		return c.lb.pickers.Load().state
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return connectivity.Shutdown
	case c.cur != nil && c.cur.takesCalls():
		return connectivity.Ready
	case c.dialing != nil:
		return connectivity.Connecting
	case !c.until.IsZero():
		return connectivity.TransientFailure
	}
	return connectivity.Idle
}

// methodConfig waits for the resolver's first result and returns the service config of a method; nil for none.
func (b *balanced) methodConfig(ctx context.Context, method string) (*methodConfig, *throttle, error) {
	b.start.Do(func() { b.asks.do(b.buildResolver) })
	select {
	case <-b.resolved:
	default:
		select {
		case <-b.resolved:
		case <-b.ctx.Done():
			return nil, nil, errClosed
		case <-ctx.Done():
			return nil, nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	sc := b.config.Load()
	if sc == nil {
		return nil, nil, nil
	}
	return sc.method(method), sc.throttle, nil
}

// pick sets the connection that the policy chooses. waited says that there was none at first.
func (b *balanced) pick(cs *clientStream) (waited bool, err error) {
	var last error
	for {
		p := b.pickers.Load()
		if p.Picker != nil {
			r, err := p.Pick(balancer.PickInfo{FullMethodName: cs.method, Ctx: cs.ctx})
			switch st, ok := status.FromError(err); {
			case err == nil:
				if sc, ok := r.SubConn.(*subConn); ok {
					if s := sc.ready(); s != nil {
						cs.s, cs.chosen = s, r
						return waited, nil
					}
				}
				if r.Done != nil {
					r.Done(balancer.DoneInfo{})
				}
			case err == balancer.ErrNoSubConnAvailable:
			case ok: // an order of the policy
				cs.dropped = true
				return waited, onlyOwnCodes(st, "picker")
			case cs.info.failFast:
				return waited, status.Error(codes.Unavailable, err.Error())
			default:
				last = err
			}
		}
		waited = true
		select {
		case <-p.changed:
		case <-cs.ctx.Done():
			return waited, waitEnded(cs.ctx, last)
		}
	}
}

// onlyOwnCodes turns codes that only a server may send into Internal (gRFC A54).
func onlyOwnCodes(st *status.Status, whose string) error {
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.Aborted,
		codes.OutOfRange, codes.DataLoss:
		return status.Errorf(codes.Internal, "fused: received %s error with illegal status: %v", whose, st.Err())
	}
	return st.Err()
}

// loadKey is the trailer of a load report (gRFC A51).
const loadKey = "endpoint-load-metrics-bin"

func (cs *clientStream) tellPolicy(err error) {
	done := cs.chosen.Done
	if done == nil {
		return
	}
	cs.chosen.Done = nil
	d := balancer.DoneInfo{Err: err}
	if st := cs.st; st != nil {
		st.mu.Lock()
		d.BytesSent, d.BytesReceived, d.Trailer = st.opened, st.hasHeader || st.ended, st.trailer
		st.mu.Unlock()
	}
	if v := d.Trailer[loadKey]; len(v) > 0 { // only programs with load reports have linked their message
		if t, err := protoregistry.GlobalTypes.FindMessageByName("xds.data.orca.v3.OrcaLoadReport"); err == nil {
			if m := t.New().Interface(); proto.Unmarshal([]byte(v[len(v)-1]), m) == nil {
				d.ServerLoad = m
			}
		}
	}
	done(d)
}

// serial runs functions one after the other, in order, in a goroutine that ends when there are none. Zero is ready.
type serial struct {
	mu     sync.Mutex
	queue  []func() // the first one runs
	closed bool
	work   sync.WaitGroup
}

// do runs f; it returns false when closed.
func (s *serial) do(f func()) bool { return s.add(f, false) }

// close runs last as the last one, and returns when it has ended. Idempotent.
func (s *serial) close(last func()) {
	s.add(last, true)
	s.work.Wait()
}

func (s *serial) add(f func(), last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = last
	if s.queue = append(s.queue, f); len(s.queue) == 1 {
		s.work.Go(s.run)
	}
	return true
}

func (s *serial) run() {
	for more := true; more; {
		s.mu.Lock()
		f := s.queue[0]
		s.mu.Unlock()
		f()
		s.mu.Lock()
		s.queue = s.queue[1:]
		more = len(s.queue) > 0
		s.mu.Unlock()
	}
}
