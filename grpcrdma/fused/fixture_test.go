package fused

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testTimeout = 30 * time.Second

var (
	must = rpctest.Must
	soon = rpctest.Soon
)

// certificate is one for rpctest.ServerName, and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	id, err := rpctest.NewIdentity()
	must(t, err)
	own, pool, err := id.Load()
	must(t, err)
	return own, pool
}

type arm struct {
	name    string
	network string
	open    func(t testing.TB) (net.Listener, dialer, func())
}

type dialer func(context.Context) (net.Conn, error)

var arms = []arm{
	{"mem", "rdma", func(t testing.TB) (net.Listener, dialer, func()) {
		f := memdev.NewFabric(memdev.Config{})
		a, err := f.Open("a")
		must(t, err)
		b, err := f.Open("b")
		must(t, err)
		return overRDMA(t, a, b, "b:0", grpcrdma.Config{})
	}},
	{"iwarp", "rdma", func(t testing.TB) (net.Listener, dialer, func()) { return overIWARP(t, grpcrdma.Config{}) }},
	{"iwarp-event", "rdma", func(t testing.TB) (net.Listener, dialer, func()) {
		return overIWARP(t, grpcrdma.Config{Ring: 16 << 10, Polling: bpev.Config{Mode: bpev.Event}})
	}},
	{"tcp", "tcp", func(t testing.TB) (net.Listener, dialer, func()) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		return l, func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", l.Addr().String())
		}, func() {}
	}},
}

func overIWARP(t testing.TB, cfg grpcrdma.Config) (net.Listener, dialer, func()) {
	a, err := iwarp.Open(iwarp.Config{})
	must(t, err)
	b, err := iwarp.Open(iwarp.Config{})
	must(t, err)
	return overRDMA(t, a, b, "127.0.0.1:0", cfg)
}

// overRDMA joins two devices. kill is the sudden death of the second.
func overRDMA(t testing.TB, a, b rdma.Device, addr string, cfg grpcrdma.Config) (net.Listener, dialer, func()) {
	cfg.Log = slog.New(slog.DiscardHandler)
	cfg.Probe = 20 * time.Millisecond
	na, err := grpcrdma.New(a, cfg)
	must(t, err)
	nb, err := grpcrdma.New(b, cfg)
	must(t, err)
	l, err := nb.Listen(context.Background(), addr)
	must(t, err)
	t.Cleanup(func() {
		must(t, na.Close())
		must(t, nb.Close())
		must(t, a.Close())
		must(t, b.Close())
	})
	return l, func(ctx context.Context) (net.Conn, error) { return na.DialContext(ctx, l.Addr().String()) },
		b.(interface{ Kill() }).Kill
}

type rpc struct {
	rpctest.Target
	svc    *rpctest.Service
	server *Server
	ch     *Channel
	dial   dialer
	kill   func()
	served chan error
}

func newRPC(t testing.TB, a arm, client, server Config) *rpc {
	t.Helper()
	l, dial, kill := a.open(t)
	return serve(t, a.network, l, dial, kill, client, server)
}

func serve(t testing.TB, network string, l net.Listener, dial dialer, kill func(), client, server Config) *rpc {
	t.Helper()
	r := &rpc{dial: dial, kill: kill, served: make(chan error, 1)}
	var err error
	r.server, err = NewServer(server)
	must(t, err)
	r.svc, r.Network = &rpctest.Service{}, network
	r.Waiting = r.svc.Waiting
	pb.RegisterTestServiceServer(r.server, r.svc)
	go func() { r.served <- r.server.Serve(l) }()
	r.ch, err = NewChannel(dial, client)
	must(t, err)
	r.Client = pb.NewTestServiceClient(r.ch)
	t.Cleanup(func() {
		must(t, r.ch.Close())
		r.server.Stop()
		if err := <-r.served; err != grpc.ErrServerStopped { // stopped before it began
			must(t, err)
		}
	})
	return r
}

func empty(t testing.TB, c pb.TestServiceClient, opts ...grpc.CallOption) {
	t.Helper()
	_, err := c.EmptyCall(soon(t), &pb.Empty{}, opts...)
	must(t, err)
}

func opened(t testing.TB, c pb.TestServiceClient, opts ...grpc.CallOption) pb.TestService_FullDuplexCallClient {
	t.Helper()
	s, err := c.FullDuplexCall(soon(t), opts...)
	must(t, err)
	return s
}

func echo(t testing.TB, s pb.TestService_FullDuplexCallClient) {
	t.Helper()
	must(t, s.Send(&pb.StreamingOutputCallRequest{}))
	_, err := s.Recv()
	must(t, err)
}

func end(t testing.TB, s pb.TestService_FullDuplexCallClient) {
	t.Helper()
	must(t, s.CloseSend())
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("the end of a stream: %v", err)
	}
}

func runAll(t *testing.T, x rpctest.Target) {
	for _, c := range rpctest.Cases {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, x) })
	}
}
