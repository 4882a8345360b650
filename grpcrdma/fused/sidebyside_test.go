package fused

import (
	"cmp"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/stats"
)

// program is servers and their client as an application writes them, for every form.
type program struct {
	service                  pb.TestServiceServer
	health                   *health.Server // nil: none
	clientCreds, serverCreds credentials.TransportCredentials
	authority                string
	clientStats, serverStats []stats.Handler
	keep                     keepalive.ServerParameters
	ownTLS                   func(net.Listener) net.Listener
	clientOwnTLS             func(net.Conn) net.Conn
	servers                  int    // that a resolver finds; 0: one that is dialled
	config                   string // service config of those
}

type running struct {
	form string
	cc   grpc.ClientConnInterface
	pb.TestServiceClient
	addrs []string
	stop  []func() // of each server; idempotent
	find  *manual.Resolver
	dials atomic.Int32

	mu    sync.Mutex
	conns []net.Conn
}

const (
	overTCP    = "grpc(tcp)"
	overDropIn = "grpc(dropin)+iwarp"
	overFused  = "grpc(fused)+iwarp"
)

// sideBySide runs one body on every form: what holds for one holds for the others.
func sideBySide(t *testing.T, p program, body func(t *testing.T, r *running)) {
	t.Helper()
	for _, form := range []string{overTCP, overDropIn, overFused} {
		t.Run(form, func(t *testing.T) { body(t, p.run(t, form)) })
	}
}

func (r *running) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
}

// ask calls n times and counts the servers that answered, up to the first error.
func (r *running) ask(t *testing.T, n int, opts ...grpc.CallOption) (seen map[string]int, err error) {
	seen = map[string]int{}
	for range n {
		var p peer.Peer
		if _, err := r.EmptyCall(soon(t), &pb.Empty{}, append(opts, grpc.Peer(&p))...); err != nil {
			return seen, err
		}
		seen[p.Addr.String()]++
	}
	return seen, nil
}

// who is ask where all calls must succeed.
func (r *running) who(t *testing.T, n int, opts ...grpc.CallOption) map[string]int {
	t.Helper()
	seen, err := r.ask(t, n, opts...)
	must(t, err)
	return seen
}

func (p *program) run(t *testing.T, form string) *running {
	t.Helper()
	r := &running{form: form, find: manual.NewBuilderWithScheme("fleet")}
	way := arms[1]
	if form == overTCP {
		way = arms[3]
	}
	dials := map[string]dialer{}
	var addrs []resolver.Address
	for range max(p.servers, 1) {
		l, dial, _ := way.open(t)
		addr := l.Addr().String()
		dials[addr], r.addrs = dial, append(r.addrs, addr)
		addrs = append(addrs, resolver.Address{Addr: addr})
		r.stop = append(r.stop, p.serve(t, form, l))
	}
	r.find.InitialState(resolver.State{Addresses: addrs})
	cc, end, err := p.client(r, func(ctx context.Context, addr string) (net.Conn, error) {
		r.dials.Add(1)
		conn, err := dials[addr](ctx)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		r.conns = append(r.conns, conn)
		r.mu.Unlock()
		if p.clientOwnTLS != nil {
			return p.clientOwnTLS(conn), nil
		}
		return conn, nil
	})
	must(t, err)
	t.Cleanup(func() { end() })
	r.cc, r.TestServiceClient = cc, pb.NewTestServiceClient(cc)
	return r
}

func (p *program) serve(t testing.TB, form string, l net.Listener) (stop func()) {
	t.Helper()
	var s interface {
		grpc.ServiceRegistrar
		Serve(net.Listener) error
		Stop()
	}
	if p.ownTLS != nil {
		l = p.ownTLS(l)
	}
	if form == overFused {
		var err error
		s, err = NewServer(Config{Creds: p.serverCreds, StatsHandlers: p.serverStats,
			MaxConnectionAge: p.keep.MaxConnectionAge, MaxConnectionAgeGrace: p.keep.MaxConnectionAgeGrace})
		must(t, err)
	} else {
		opts := []grpc.ServerOption{grpc.Creds(p.serverCreds), grpc.KeepaliveParams(p.keep)}
		for _, h := range p.serverStats {
			opts = append(opts, grpc.StatsHandler(h))
		}
		s = grpc.NewServer(opts...)
	}
	pb.RegisterTestServiceServer(s, p.service)
	if p.health != nil {
		healthpb.RegisterHealthServer(s, p.health)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); must(t, <-served) })
	return s.Stop
}

// client makes the client of r; dial is given the address of a server.
func (p *program) client(r *running, dial func(context.Context, string) (net.Conn, error)) (
	cc grpc.ClientConnInterface, end func() error, err error) {
	const all = "fleet:///all.test"
	if r.form == overFused {
		cfg := Config{Creds: p.clientCreds, Authority: p.authority, StatsHandlers: p.clientStats, ServiceConfig: p.config,
			Resolvers: []resolver.Builder{r.find}}
		if p.servers > 0 {
			ch, err := NewClient(all, dial, cfg)
			return ch, ch.Close, err
		}
		ch, err := NewChannel(func(ctx context.Context) (net.Conn, error) { return dial(ctx, r.addrs[0]) }, cfg)
		return ch, ch.Close, err
	}
	creds := p.clientCreds
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(creds), grpc.WithContextDialer(dial),
		grpc.WithResolvers(r.find), grpc.WithAuthority(p.authority), grpc.WithDefaultServiceConfig(cmp.Or(p.config, "{}"))}
	for _, h := range p.clientStats {
		opts = append(opts, grpc.WithStatsHandler(h))
	}
	target := all
	if p.servers == 0 {
		target = "passthrough:///" + r.addrs[0]
	}
	c, err := grpc.NewClient(target, opts...)
	return c, c.Close, err
}
