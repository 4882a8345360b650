package grpcrdma

import (
	"bytes"
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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// Everything of gRPC that needs no special set-up, on one connection.
func TestGRPCUnchanged(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		r := newRPC(t, p, cfg, nil)
		t.Run("unary", func(t *testing.T) { testUnary(t, r) })
		t.Run("metadata", func(t *testing.T) { testMetadata(t, r) })
		t.Run("status", func(t *testing.T) { testStatus(t, r) })
		t.Run("server streaming", func(t *testing.T) { testServerStreaming(t, r) })
		t.Run("client streaming", func(t *testing.T) { testClientStreaming(t, r) })
		t.Run("bidirectional", func(t *testing.T) { testBidirectional(t, r) })
		t.Run("deadline", func(t *testing.T) { testDeadline(t, r) })
		t.Run("cancel", func(t *testing.T) { testCancel(t, r) })
		t.Run("compression", func(t *testing.T) { testUnary(t, r, grpc.UseCompressor(gzip.Name)) })
		t.Run("far above the ring", func(t *testing.T) { testLarge(t, r) })
		t.Run("concurrent calls", func(t *testing.T) { testConcurrent(t, r) })
	})
}

func testUnary(t *testing.T, r *rpc, opts ...grpc.CallOption) {
	for _, size := range []int{0, 1, 64, 4000, 40_000} {
		var from peer.Peer
		resp, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: int32(size), Payload: &pb.Payload{Body: make([]byte, 2*size)}},
			append(opts, grpc.Peer(&from))...)
		must(t, err)
		body := resp.GetPayload().GetBody()
		for i := range body {
			if body[i] != byte(i)^byte(2*size) {
				t.Fatalf("byte %d of %d is %#x", i, size, body[i])
			}
		}
		if len(body) != size || from.Addr.Network() != "rdma" {
			t.Errorf("%d bytes for %d, over %v", len(body), size, from.Addr)
		}
	}
}

func testMetadata(t *testing.T, r *rpc) {
	binary := string([]byte{0, 1, 255, 'x'})
	ctx := metadata.AppendToOutgoingContext(soon(t), "echo", "hello", "echo-bin", binary)
	var header, trailer metadata.MD
	_, err := r.client.EmptyCall(ctx, &pb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	must(t, err)
	if h, b := header.Get("echo-header"), trailer.Get("echo-trailer-bin"); len(h) != 1 || h[0] != "hello" || len(b) != 1 || b[0] != binary {
		t.Errorf("header %v, trailer %q", h, b)
	}
}

func testStatus(t *testing.T, r *rpc) {
	const text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	_, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.DataLoss), Message: text}})
	if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != text {
		t.Errorf("%v", err)
	}
	if _, err := r.client.UnimplementedCall(soon(t), &pb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("%v", err)
	}
}

func testServerStreaming(t *testing.T, r *rpc) {
	in := &pb.StreamingOutputCallRequest{}
	for i := range 50 {
		in.ResponseParameters = append(in.ResponseParameters, &pb.ResponseParameters{Size: int32(i * 1000)})
	}
	s, err := r.client.StreamingOutputCall(soon(t), in)
	must(t, err)
	for i := range 50 {
		m, err := s.Recv()
		must(t, err)
		if n := len(m.GetPayload().GetBody()); n != i*1000 {
			t.Fatalf("message %d has %d bytes", i, n)
		}
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("behind the last message: %v", err)
	}
}

func testClientStreaming(t *testing.T, r *rpc) {
	s, err := r.client.StreamingInputCall(soon(t))
	must(t, err)
	for i := range 50 {
		must(t, s.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, i*1000)}}))
	}
	sum, err := s.CloseAndRecv()
	must(t, err)
	if sum.AggregatedPayloadSize != 49*50/2*1000 {
		t.Errorf("%d bytes arrived", sum.AggregatedPayloadSize)
	}
}

func testBidirectional(t *testing.T, r *rpc) {
	s, err := r.client.FullDuplexCall(soon(t))
	must(t, err)
	for i := range 100 {
		want := pattern(i*50, byte(i))
		must(t, s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: want}}))
		m, err := s.Recv()
		must(t, err)
		if !bytes.Equal(m.GetPayload().GetBody(), want) {
			t.Fatalf("message %d differs", i)
		}
	}
	must(t, s.CloseSend())
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
}

func testDeadline(t *testing.T, r *rpc) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: block}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	r.allEnded(t)
}

// allEnded waits until the server, too, has seen the end of every call that waits for it.
func (r *rpc) allEnded(t *testing.T) {
	t.Helper()
	within(t, "the server's side of an ended call", func() {
		for r.svc.ended.Load() != r.svc.begun.Load() {
			time.Sleep(time.Millisecond)
		}
	})
}

func testCancel(t *testing.T, r *rpc) {
	ctx, cancel := context.WithCancel(soon(t))
	before := r.svc.begun.Load()
	go func() {
		for ctx.Err() == nil && r.svc.begun.Load() == before {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := r.client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: block}); status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	r.allEnded(t)
}

func testLarge(t *testing.T, r *rpc) {
	const size = 3 << 20 // below gRPC's own limit of 4 MiB, twelve default rings
	resp, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: size, Payload: &pb.Payload{Body: make([]byte, size)}})
	must(t, err)
	if n := len(resp.GetPayload().GetBody()); n != size {
		t.Errorf("%d bytes", n)
	}
}

func testConcurrent(t *testing.T, r *rpc) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				resp, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: int32(i * 300)})
				if err != nil || len(resp.GetPayload().GetBody()) != i*300 {
					t.Errorf("call of %d bytes: %v", i*300, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestInterceptorsSeeEveryCall(t *testing.T) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) {
			var seen [4]atomic.Int32
			serve := []grpc.ServerOption{
				grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
					seen[0].Add(1)
					return h(ctx, req)
				}),
				grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
					seen[1].Add(1)
					return h(srv, s)
				}),
			}
			r := newRPC(t, p, Config{}, serve, plain(),
				grpc.WithUnaryInterceptor(func(ctx context.Context, m string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
					seen[2].Add(1)
					return call(ctx, m, req, reply, cc, o...)
				}),
				grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					seen[3].Add(1)
					return open(ctx, d, cc, m, o...)
				}))
			testUnary(t, r)
			testBidirectional(t, r)
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
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
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
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
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
				r := newRPC(t, p, Config{}, []grpc.ServerOption{grpc.Creds(credentials.NewTLS(sc))}, grpc.WithTransportCredentials(credentials.NewTLS(cc)))
				testUnary(t, r)
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
				other := r.newClient("passthrough:///"+r.l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(bad)))
				defer other.Close()
				if _, err := pb.NewTestServiceClient(other).EmptyCall(soon(t), &pb.Empty{}); status.Code(err) != codes.Unavailable {
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
			s := grpc.NewServer()
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
			for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING} {
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
			must(t, rs.Send(&reflectpb.ServerReflectionRequest{MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}))
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
			testUnary(t, r)
			within(t, "the end of an idle connection", func() {
				for r.b.Stats().Conns > 0 {
					time.Sleep(5 * time.Millisecond)
				}
			})
			testUnary(t, r) // a new connection

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
		testUnary(t, r)
		stream, err := r.client.FullDuplexCall(soon(t))
		must(t, err)
		errs := make(chan error, 2)
		go func() {
			_, err := r.client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: block})
			errs <- err
		}()
		go func() {
			for {
				if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, 1000)}}); err != nil {
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
		r.db.(killer).Kill()
		within(t, "a call to a dead peer", func() {
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
				if _, err := pb.NewTestServiceClient(bad).EmptyCall(soon(t), &pb.Empty{}); err == nil || !strings.Contains(err.Error(), "host:port") {
					t.Errorf("%s: %v", target, err)
				}
				bad.Close()
			}
		})
	}
}
