package fused

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/serviceconfig"
)

// NewClient makes a channel to target, "scheme:///endpoint" as of grpc.NewClient, under grpc-go's own resolvers and
// load balancing policies: those registered with it, and [Config.Resolvers]. dial makes a connection to an address that
// the resolver found, when calls want it. ErrConfig for a configuration out of range, a target without a resolver, and
// a service config that makes no sense.
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

// findResolver reads a target as grpc.NewClient does: one whose scheme nobody knows is a name for DNS.
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

// authority is whom calls mean to reach, in grpc-go's order.
func (b *balanced) authority() string {
	if b.cfg.Authority != "" {
		return b.cfg.Authority
	}
	if b.cfg.Creds != nil && b.cfg.Creds.Info().ServerName != "" {
		return b.cfg.Creds.Info().ServerName
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

// escapeAuthority writes what RFC 3986 §3.2 does not allow in an authority as %XX.
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

// ParseServiceConfig is how a resolver hands on a service config.
func (r *resolving) ParseServiceConfig(text string) *serviceconfig.ParseResult {
	sc, err := parseServiceConfig(text)
	if err != nil {
		return &serviceconfig.ParseResult{Err: err}
	}
	return &serviceconfig.ParseResult{Config: sc}
}

// State is what the load balancing policy says of a channel of NewClient, and of another whether it has a connection.
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
