package fused

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/stats"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
)

// program is a server and its client as an application writes them, for grpc-go over
// TCP and for this package alike.
type program struct {
	service                  pb.TestServiceServer // nil: the server has register alone
	register                 func(grpc.ServiceRegistrar)
	clientCreds, serverCreds credentials.TransportCredentials
	authority                string
	clientStats, serverStats stats.Handler
	unaryServer              grpc.UnaryServerInterceptor
	maxRecv                  int // of the client; 0 for the default
	ownTLS                   func(net.Listener) net.Listener
	clientOwnTLS             func(context.Context, net.Conn) (net.Conn, error)
	headerLimit              int // of both sides; 0 for the default
}

// running is a program at work.
type running struct {
	form string
	cc   grpc.ClientConnInterface
	pb.TestServiceClient
	addr string
	cut  func() // the connections of the client are lost
}

// cutter counts the connections of a client and cuts them off.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) keep(conn net.Conn, err error) (net.Conn, error) {
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// sideBySide runs one body on grpc-go over TCP, on grpc-go over RDMA and on this package
// over iWARP: what holds for one holds for the others.
func sideBySide(t *testing.T, p program, body func(t *testing.T, r *running)) {
	t.Helper()
	t.Run("grpc(tcp)", func(t *testing.T) { body(t, p.overTCP(t)) })
	t.Run("grpc(dropin)+iwarp", func(t *testing.T) { body(t, p.overDropIn(t)) })
	t.Run("grpc(fused)+iwarp", func(t *testing.T) { body(t, p.overFused(t)) })
}

func (p *program) serve(s grpc.ServiceRegistrar) {
	if p.service != nil {
		pb.RegisterTestServiceServer(s, p.service)
	}
	if p.register != nil {
		p.register(s)
	}
}

func (p *program) overTCP(t *testing.T) *running {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return p.overHTTP2(t, "tcp", l, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	})
}

func (p *program) overDropIn(t *testing.T) *running {
	t.Helper()
	l, dial, _ := overIWARP(t, grpcrdma.Config{})
	return p.overHTTP2(t, "dropin", l, dial)
}

// overHTTP2 is grpc-go on whatever l and connect are.
func (p *program) overHTTP2(t *testing.T, form string, l net.Listener, connect dialer) *running {
	t.Helper()
	r := &running{form: form, addr: l.Addr().String()}
	var opts []grpc.ServerOption
	if p.serverCreds != nil {
		opts = append(opts, grpc.Creds(p.serverCreds))
	}
	if p.serverStats != nil {
		opts = append(opts, grpc.StatsHandler(p.serverStats))
	}
	if p.unaryServer != nil {
		opts = append(opts, grpc.UnaryInterceptor(p.unaryServer))
	}
	if p.headerLimit > 0 {
		opts = append(opts, grpc.MaxHeaderListSize(uint32(p.headerLimit)))
	}
	srv := grpc.NewServer(opts...)
	p.serve(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var made cutter
	r.cut = made.cut
	creds := p.clientCreds
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	dial := []grpc.DialOption{grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return made.keep(connect(ctx))
		})}
	if p.clientStats != nil {
		dial = append(dial, grpc.WithStatsHandler(p.clientStats))
	}
	if p.authority != "" {
		dial = append(dial, grpc.WithAuthority(p.authority))
	}
	if p.maxRecv > 0 {
		dial = append(dial, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(p.maxRecv)))
	}
	if p.headerLimit > 0 {
		dial = append(dial, grpc.WithMaxHeaderListSize(uint32(p.headerLimit)))
	}
	cc, err := grpc.NewClient("passthrough:///"+r.addr, dial...)
	must(t, err)
	r.cc, r.TestServiceClient = cc, pb.NewTestServiceClient(cc)
	t.Cleanup(func() { cc.Close(); srv.Stop(); must(t, <-served) })
	return r
}

func (p *program) overFused(t *testing.T) *running {
	t.Helper()
	l, dial, _ := overIWARP(t, grpcrdma.Config{})
	r := &running{form: "fused", addr: l.Addr().String()}
	server := Config{Creds: p.serverCreds}
	if p.serverStats != nil {
		server.StatsHandlers = []stats.Handler{p.serverStats}
	}
	if p.unaryServer != nil {
		server.UnaryServer = []grpc.UnaryServerInterceptor{p.unaryServer}
	}
	if p.ownTLS != nil {
		l = p.ownTLS(l)
	}
	srv, err := NewServer(server)
	must(t, err)
	p.serve(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	var made cutter
	r.cut = made.cut
	client := Config{Creds: p.clientCreds, Authority: p.authority, MaxRecvMsgSize: p.maxRecv}
	if p.clientStats != nil {
		client.StatsHandlers = []stats.Handler{p.clientStats}
	}
	ch, err := NewChannel(func(ctx context.Context) (net.Conn, error) {
		c, err := made.keep(dial(ctx))
		if err == nil && p.clientOwnTLS != nil {
			return p.clientOwnTLS(ctx, c)
		}
		return c, err
	}, client)
	must(t, err)
	r.cc, r.TestServiceClient = ch, pb.NewTestServiceClient(ch)
	t.Cleanup(func() { ch.Close(); srv.Stop(); must(t, <-served) })
	return r
}
