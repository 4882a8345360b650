package grpcrdma

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// Everything of gRPC that needs no special set-up, on one connection.
func TestGRPCUnchanged(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		r := newRPC(t, p, cfg, nil)
		for _, c := range rpctest.Cases {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, r.target()) })
		}
	})
}

func TestInterceptorsSeeEveryCall(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			var seen [4]atomic.Int32
			serve := []grpc.ServerOption{
				grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo,
					h grpc.UnaryHandler) (any, error) {
					seen[0].Add(1)
					return h(ctx, req)
				}),
				grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo,
					h grpc.StreamHandler) error {
					seen[1].Add(1)
					return h(srv, s)
				}),
			}
			r := newRPC(t, p, Config{}, serve, plain(),
				grpc.WithUnaryInterceptor(func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn,
					call grpc.UnaryInvoker, o ...grpc.CallOption) error {
					seen[2].Add(1)
					return call(ctx, m, req, reply, cc, o...)
				}),
				grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string,
					open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					seen[3].Add(1)
					return open(ctx, d, cc, m, o...)
				}))
			rpctest.Unary(t, r.target())
			rpctest.Bidirectional(t, r.target())
			for i := range seen {
				if seen[i].Load() == 0 {
					t.Errorf("interceptor %d saw nothing", i)
				}
			}
		})
	}
}

// authority signs certificates for the tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test ca"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		DNSNames:  []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSAndMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	server := ca.issue(t, "server.test")
	for _, p := range providers {
		for _, mutual := range []bool{false, true} {
			t.Run(p.name+map[bool]string{false: "/tls", true: "/mutual"}[mutual], func(t *testing.T) {
				sc := &tls.Config{Certificates: []tls.Certificate{server}}
				cc := &tls.Config{RootCAs: ca.pool, ServerName: "server.test"}
				if mutual {
					sc.ClientAuth, sc.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool
					cc.Certificates = []tls.Certificate{ca.issue(t, "client.test")}
				}
				r := newRPC(t, p, Config{}, []grpc.ServerOption{grpc.Creds(credentials.NewTLS(sc))},
					grpc.WithTransportCredentials(credentials.NewTLS(cc)))
				rpctest.Unary(t, r.target())
				var from peer.Peer
				_, err := r.client.EmptyCall(soon(t), &pb.Empty{}, grpc.Peer(&from))
				must(t, err)
				if from.AuthInfo == nil || from.AuthInfo.AuthType() != "tls" {
					t.Errorf("the call was not secured: %+v", from.AuthInfo)
				}
				// Whoever trusts somebody else, or shows nothing, gets no call through.
				bad := &tls.Config{RootCAs: stranger.pool, ServerName: "server.test"}
				if mutual {
					bad = &tls.Config{RootCAs: ca.pool, ServerName: "server.test"}
				}
				other := r.newClient("passthrough:///"+r.l.Addr().String(),
					grpc.WithTransportCredentials(credentials.NewTLS(bad)))
				defer other.Close()
				if _, err := pb.NewTestServiceClient(other).EmptyCall(soon(t),
					&pb.Empty{}); status.Code(err) != codes.Unavailable {
					t.Errorf("a peer without trust: %v", err)
				}
			})
		}
	}
}

func TestHealthAndReflection(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			e := newPair(t, p, Config{}, Config{})
			s := grpc.NewServer(grpc.WaitForHandlers(true))
			hs := health.NewServer()
			healthpb.RegisterHealthServer(s, hs)
			reflection.Register(s)
			over := make(chan error, 1)
			go func() { over <- s.Serve(e.l) }()
			cc, err := grpc.NewClient("passthrough:///"+e.l.Addr().String(), WithRDMA(e.a), plain())
			must(t, err)
			defer func() { cc.Close(); s.GracefulStop(); must(t, <-over) }()
			hc := healthpb.NewHealthClient(cc)
			ctx, cancel := context.WithCancel(soon(t))
			defer cancel()
			w, err := hc.Watch(ctx, &healthpb.HealthCheckRequest{})
			must(t, err)
			for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING,
				healthpb.HealthCheckResponse_NOT_SERVING} {
				hs.SetServingStatus("", want)
				for {
					m, err := w.Recv()
					must(t, err)
					if m.Status == want {
						break
					}
				}
			}
			rs, err := reflectpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
			must(t, err)
			must(t, rs.Send(&reflectpb.ServerReflectionRequest{
				MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}))
			m, err := rs.Recv()
			must(t, err)
			if got := m.GetListServicesResponse().String(); !strings.Contains(got, "grpc.health.v1.Health") {
				t.Errorf("services: %v", got)
			}
			must(t, rs.CloseSend())
		})
	}
}

// Idle connections end in order, and silent ones are given up.
func TestKeepalive(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			serve := grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 150 * time.Millisecond})
			r := newRPC(t, p, Config{}, []grpc.ServerOption{serve}, plain())
			rpctest.Unary(t, r.target())
			rpctest.Within(t, "the end of an idle connection", func() {
				for r.b.Stats().Conns > 0 {
					time.Sleep(5 * time.Millisecond)
				}
			})
			rpctest.Unary(t, r.target()) // a new connection

			// A client that opens the connection and then answers no ping.
			serve = grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Second, Timeout: 100 * time.Millisecond})
			r = newRPC(t, p, Config{}, []grpc.ServerOption{serve}, plain())
			c, err := r.a.DialContext(t.Context(), r.l.Addr().String())
			must(t, err)
			defer c.Close()
			_, err = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
			must(t, err)
			must(t, c.SetReadDeadline(time.Now().Add(testTimeout)))
			if _, err := io.Copy(io.Discard, c); err != nil && isTimeout(err) {
				t.Errorf("a silent client is kept: %v", err)
			}
		})
	}
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// The sudden death of the server ends the calls in progress, the ones that wait
// as well as the ones that stream, within a bound.
func TestPeerDeathIsUnavailable(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		cfg.Probe = 20 * time.Millisecond
		r := newRPC(t, p, cfg, nil)
		mortal, ok := r.db.(killer)
		if !ok {
			return // a device of the kernel dies with its process: package interop kills one
		}
		rpctest.Unary(t, r.target())
		stream, err := r.client.FullDuplexCall(soon(t))
		must(t, err)
		errs := make(chan error, 2)
		go func() {
			_, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: rpctest.Block})
			errs <- err
		}()
		go func() {
			for {
				if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte,
					1000)}}); err != nil {
					_, err = stream.Recv() // Send says io.EOF; the reason is here
					errs <- err
					return
				}
				if _, err := stream.Recv(); err != nil {
					errs <- err
					return
				}
			}
		}()
		time.Sleep(20 * time.Millisecond)
		mortal.Kill()
		rpctest.Within(t, "a call to a dead peer", func() {
			for range 2 {
				if err := <-errs; status.Code(err) != codes.Unavailable {
					t.Errorf("%v", err)
				}
			}
		})
	})
}

func TestResolverTargets(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			r := newRPC(t, p, Config{}, nil)
			cc := r.newClient("rdma:///"+r.l.Addr().String(), plain(), grpc.WithResolvers(Resolver()))
			defer cc.Close()
			_, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{})
			must(t, err)
			for _, target := range []string{"rdma:///nowhere", "rdma://authority/host:1", "rdma:///:1", "rdma:///"} {
				bad := r.newClient(target, plain(), grpc.WithResolvers(Resolver()))
				if _, err := pb.NewTestServiceClient(bad).EmptyCall(soon(t), &pb.Empty{}); err == nil ||
					!strings.Contains(err.Error(), "host:port") {
					t.Errorf("%s: %v", target, err)
				}
				bad.Close()
			}
		})
	}
}

// A target or an address with the scheme means the same from any resolver: other
// resolvers pass it on whole, or cut some of it.
func TestOneSpellingThroughAnyResolver(t *testing.T) {
	e := newPair(t, providers[1], Config{}, Config{})
	s := grpc.NewServer()
	pb.RegisterTestServiceServer(s, &rpctest.Service{})
	over := make(chan error, 1)
	go func() { over <- s.Serve(e.l) }()
	defer func() { s.Stop(); must(t, <-over) }()
	at := e.l.Addr().String()
	for _, addr := range []string{"rdma:///" + at, "rdma://" + at} {
		other := manual.NewBuilderWithScheme("etcd-endpoints")
		other.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: addr, ServerName: "127.0.0.1"}}})
		cc, err := grpc.NewClient("etcd-endpoints:///any", grpc.WithResolvers(other), WithRDMA(e.a), plain())
		must(t, err)
		var from peer.Peer
		if _, err = pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{}, grpc.Peer(&from)); err != nil ||
			from.Addr.Network() != "rdma" {
			t.Errorf("%s: %v, reached over %v", addr, err, from.Addr)
		}
		cc.Close()
	}
	// A client that has the resolver alone says what it lacks.
	cc, err := grpc.NewClient("rdma:///"+at, grpc.WithResolvers(Resolver()), plain())
	must(t, err)
	defer cc.Close()
	if _, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{}); err == nil ||
		!strings.Contains(err.Error(), "grpcrdma.WithRDMA") {
		t.Errorf("without WithRDMA: %v", err)
	}
}
