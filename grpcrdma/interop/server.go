package interop

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	stock "google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcorca "google.golang.org/grpc/orca"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

const (
	toInterop = "interop" // grpc-go's own test server
	toCalls   = "calls"   // the server of the shared cases, with interceptors and a stats handler
	toTLS     = "tls"     // likewise, with a certificate
	toMutual  = "mutual"  // likewise, and asks for the client's
	toIdle    = "idle"    // ends idle connections
	toPings   = "pings"   // gives up clients that answer no ping
	toOld     = "old"     // ends connections that are idleLimit old
)

const (
	// maxMessage is 64 MiB and what is around them.
	maxMessage = 72 << 20

	idleLimit = 200 * time.Millisecond // of toIdle
	pingEvery = time.Second            // of toPings; gRPC takes no less
	pingWait  = 500 * time.Millisecond // long on a busy machine, short for a case
)

// Peer is how a case reaches its server, as processes exchange it.
type Peer struct {
	Addrs    map[string]string `json:"addrs"`
	Identity rpctest.Identity  // of both sides
}

// counts is what a server reports of itself.
type counts struct {
	Begun, Ended   int32 // calls that wait for the end of their context
	Conns          int   // connections of RDMA, this one included
	Goroutines     int
	Unary, Streams int64 // calls that interceptors saw
	Stats          int64 // ends of calls that the stats handler saw
}

// askKey is the metadata key of questions for counts, and of answers.
const askKey = "rdmaperf-counts"

// Server serves every variant of a form.
type Server struct {
	Peer    Peer // how to reach it
	form    carrier.Form
	net     *grpcrdma.Net
	svc     rpctest.Service
	unary   atomic.Int64
	streams atomic.Int64
	events  watcher

	stops  []func()
	served sync.WaitGroup
	mu     sync.Mutex
	errs   []error
}

// NewServer serves every variant at addr, whose port is 0; with only, that variant at exactly addr. n is nil for the
// forms without RDMA. It outlives the Server.
func NewServer(ctx context.Context, form carrier.Form, n *grpcrdma.Net, addr, only string) (*Server, error) {
	id, err := rpctest.NewIdentity()
	if err != nil {
		return nil, err
	}
	cert, pool, err := id.Load()
	if err != nil {
		return nil, err
	}
	s := &Server{form: form, net: n, Peer: Peer{Addrs: map[string]string{}, Identity: id}}
	onlyCert := &tls.Config{Certificates: []tls.Certificate{cert}}
	mutual := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: pool}
	for _, v := range []struct {
		name string
		tls  *tls.Config
		keep keepalive.ServerParameters
	}{
		{name: toInterop},
		{name: toCalls},
		{name: toTLS, tls: onlyCert},
		{name: toMutual, tls: mutual},
		{name: toIdle, keep: keepalive.ServerParameters{MaxConnectionIdle: idleLimit}},
		{name: toPings, keep: keepalive.ServerParameters{Time: pingEvery, Timeout: pingWait}},
		{name: toOld, keep: keepalive.ServerParameters{MaxConnectionAge: idleLimit}},
	} {
		if only != "" && v.name != only {
			continue
		}
		if err := s.serve(ctx, v.name, addr, v.tls, v.keep); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Server) listen(ctx context.Context, addr string) (net.Listener, error) {
	if s.net != nil {
		return s.net.Listen(ctx, addr)
	}
	if s.form == carrier.Unix && !strings.HasPrefix(addr, "@") { // abstract (unix(7)): nothing has to remove it
		addr = "@rdmaperf-" + rand.Text()
	}
	return new(net.ListenConfig).Listen(ctx, s.form.String(), addr)
}

func (s *Server) serve(ctx context.Context, variant, addr string, secure *tls.Config,
	keep keepalive.ServerParameters) error {
	l, err := s.listen(ctx, addr)
	if err != nil {
		return err
	}
	s.Peer.Addrs[variant] = l.Addr().String()
	var creds credentials.TransportCredentials
	if secure != nil {
		creds = credentials.NewTLS(secure)
	}
	var srv interface {
		reflection.GRPCServer
		carrier.Server
	}
	if s.form.Frames() {
		srv, err = fused.NewServer(fused.Config{UnaryServer: []grpc.UnaryServerInterceptor{s.seeUnary},
			StreamServer: []grpc.StreamServerInterceptor{s.seeStream}, StatsHandlers: []stats.Handler{&s.events},
			MaxRecvMsgSize: maxMessage, Creds: creds, MaxConnectionIdle: keep.MaxConnectionIdle,
			MaxConnectionAge: keep.MaxConnectionAge, PingTime: keep.Time, PingTimeout: keep.Timeout})
		if err != nil {
			return errors.Join(err, l.Close())
		}
	} else {
		srv = grpc.NewServer(grpc.KeepaliveParams(keep), grpc.UnaryInterceptor(s.seeUnary), grpc.Creds(creds),
			grpc.StreamInterceptor(s.seeStream), grpc.StatsHandler(&s.events),
			grpc.MaxRecvMsgSize(maxMessage), grpcorca.CallMetricsServerOption(nil),
			grpc.WaitForHandlers(true)) // whose client has given up: one may be unmarshalling 64 MiB yet
	}
	if variant == toInterop {
		pb.RegisterTestServiceServer(srv, named{stock.NewTestServer()})
		healthpb.RegisterHealthServer(srv, health.NewServer())
		reflection.Register(srv)
	} else {
		pb.RegisterTestServiceServer(srv, &s.svc)
	}
	s.stops = append(s.stops, srv.Stop)
	s.served.Go(func() {
		if err := srv.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began
			s.mu.Lock()
			s.errs = append(s.errs, err)
			s.mu.Unlock()
		}
	})
	return nil
}

// named adds the server's name to grpc-go's server, for pick_first_unary.
type named struct{ pb.TestServiceServer }

func (n named) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	out, err := n.TestServiceServer.UnaryCall(ctx, in)
	if err == nil && in.GetFillServerId() {
		out.ServerId = "rdmaperf"
	}
	return out, err
}

// seeUnary counts calls, and answers questions for counts.
func (s *Server) seeUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md.Get(askKey)) == 0 {
		s.unary.Add(1)
		return h(ctx, req)
	}
	c := counts{Goroutines: runtime.NumGoroutine(), Unary: s.unary.Load(), Streams: s.streams.Load(),
		Stats: s.events.ends.Load()}
	c.Begun, c.Ended = s.svc.Waiting()
	if s.net != nil {
		c.Conns = s.net.Stats().Conns
	}
	b, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if err := grpc.SetHeader(ctx, metadata.Pairs(askKey, string(b))); err != nil {
		return nil, err
	}
	return &pb.Empty{}, nil
}

func (s *Server) seeStream(srv any, st grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
	s.streams.Add(1)
	return h(srv, st)
}

// Close ends all services and the calls in progress, and returns the errors of serving.
func (s *Server) Close() error {
	for _, stop := range s.stops {
		stop()
	}
	s.served.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}
