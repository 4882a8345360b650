package fused

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// What gRPC's users rely on, as over HTTP/2.
func TestGRPCUnchanged(t *testing.T) {
	for _, a := range arms {
		t.Run(a.name, func(t *testing.T) {
			r := newRPC(t, a, Config{}, Config{})
			runAll(t, r.Target)
		})
	}
}

func everywhere(t *testing.T, f func(t *testing.T, a arm)) {
	for _, a := range arms {
		t.Run(a.name, func(t *testing.T) { f(t, a) })
	}
}

func TestInterceptorsSeeEveryCallInOrder(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	note := func(s string) {
		mu.Lock()
		seen = append(seen, s)
		mu.Unlock()
	}
	var cc, sc Config
	for _, n := range []string{"1", "2"} {
		cc.UnaryClient = append(cc.UnaryClient, func(ctx context.Context, m string, req, reply any, c *grpc.ClientConn,
			call grpc.UnaryInvoker, o ...grpc.CallOption) error {
			note("cu" + n)
			return call(ctx, m, req, reply, c, o...)
		})
		cc.StreamClient = append(cc.StreamClient, func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn,
			m string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			note("cs" + n)
			return open(ctx, d, c, m, o...)
		})
		sc.UnaryServer = append(sc.UnaryServer, func(ctx context.Context, req any, i *grpc.UnaryServerInfo,
			h grpc.UnaryHandler) (any, error) {
			note("su" + n + i.FullMethod)
			return h(ctx, req)
		})
		sc.StreamServer = append(sc.StreamServer, func(srv any, s grpc.ServerStream, i *grpc.StreamServerInfo,
			h grpc.StreamHandler) error {
			note("ss" + n + i.FullMethod)
			return h(srv, s)
		})
	}
	r := newRPC(t, arms[0], cc, sc)
	_, err := r.Client.EmptyCall(soon(t), &pb.Empty{})
	must(t, err)
	rpctest.Bidirectional(t, r.Target)
	const s = "/grpc.testing.TestService/"
	want := []string{"cu1", "cu2", "su1" + s + "EmptyCall", "su2" + s + "EmptyCall", "cs1", "cs2",
		"ss1" + s + "FullDuplexCall", "ss2" + s + "FullDuplexCall"}
	if !slices.Equal(seen, want) {
		t.Errorf("%v", seen)
	}
}

// recorder is a stats handler that notes the kinds of what it is told.
type recorder struct {
	mu    sync.Mutex
	kinds map[string]int
	conns atomic.Int32
	end   error
}

type tagKey struct{}

func (r *recorder) TagRPC(ctx context.Context, i *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, tagKey{}, i.FullMethodName)
}

func (r *recorder) HandleRPC(ctx context.Context, s stats.RPCStats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Value(tagKey{}) == nil {
		r.kinds["untagged"]++
	}
	switch s := s.(type) {
	case *stats.Begin:
		r.kinds["begin"]++
	case *stats.InHeader:
		r.kinds["in header"]++
	case *stats.OutHeader:
		r.kinds["out header"]++
	case *stats.InPayload:
		r.kinds["in"] += s.Length
	case *stats.OutPayload:
		r.kinds["out"] += s.Length
	case *stats.InTrailer:
		r.kinds["in trailer"]++
	case *stats.End:
		r.kinds["end"]++
		r.end = s.Error
	}
}

func (r *recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (r *recorder) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ok := s.(*stats.ConnBegin); ok {
		r.conns.Add(1)
	} else {
		r.conns.Add(-1)
	}
}

func TestStatsHandlers(t *testing.T) {
	client, server := &recorder{kinds: map[string]int{}}, &recorder{kinds: map[string]int{}}
	r := newRPC(t, arms[0], Config{StatsHandlers: []stats.Handler{client}},
		Config{StatsHandlers: []stats.Handler{server}})
	_, err := r.Client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: 1000})
	must(t, err)
	_, err = r.Client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 7}})
	if status.Code(err) != codes.PermissionDenied {
		t.Error(err)
	}
	r.server.Stop() // behind the last word of the server's handler
	for name, rec := range map[string]*recorder{"client": client, "server": server} {
		rec.mu.Lock()
		k := rec.kinds
		// an error has a trailer only
		if k["begin"] != 2 || k["end"] != 2 || k["untagged"] != 0 || k["in header"]+k["out header"] != 3 ||
			status.Code(rec.end) != codes.PermissionDenied {
			t.Errorf("%s: %v, ended with %v", name, k, rec.end)
		}
		rec.mu.Unlock()
	}
	if client.kinds["in"] < 1000 || client.kinds["in"] != server.kinds["out"] ||
		client.kinds["out"] != server.kinds["in"] {
		t.Errorf("client %v, server %v", client.kinds, server.kinds)
	}
	if n := server.conns.Load(); n != 0 {
		t.Errorf("%d connections begun and not ended", n)
	}
}

// oldCodec is of the kind that gRPC deprecated.
type oldCodec struct{}

func (oldCodec) Marshal(any) ([]byte, error) { return nil, nil }
func (oldCodec) Unmarshal([]byte, any) error { return nil }
func (oldCodec) String() string              { return "old" }

func TestCallOptionsAndLimits(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{MaxRecvMsgSize: 100_000, MaxHeaderListSize: maxBlocks})
	big := &pb.SimpleRequest{ResponseSize: 50_000}
	var from peer.Peer
	var finished error = errors.New("not called")
	_, err := r.Client.UnaryCall(soon(t), big, grpc.Peer(&from), grpc.OnFinish(func(err error) { finished = err }))
	must(t, err)
	if from.Addr == nil || finished != nil {
		t.Errorf("peer %v, finished %v", from.Addr, finished)
	}
	for name, tc := range map[string]struct {
		in   *pb.SimpleRequest
		opt  grpc.CallOption
		want codes.Code
	}{
		"answer too long for the client": {big, grpc.MaxCallRecvMsgSize(10_000), codes.ResourceExhausted},
		"request too long for the client": {&pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 2000)}},
			grpc.MaxCallSendMsgSize(1000), codes.ResourceExhausted},
		"request too long for the server": {&pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 200_000)}},
			grpc.StaticMethod(), codes.ResourceExhausted},
		"unknown compressor":                {big, grpc.UseCompressor("no such"), codes.Internal},
		"unknown codec":                     {big, grpc.CallContentSubtype("no such"), codes.Internal},
		"an option that is not supported":   {big, grpc.CallCustomCodec(oldCodec{}), codes.Unimplemented},
		"credentials on a plain connection": {big, grpc.PerRPCCredentials(token{secure: true}), codes.Unauthenticated},
		"per-call credentials":              {big, grpc.PerRPCCredentials(token{}), codes.OK},
		"waiting for a connection":          {big, grpc.WaitForReady(true), codes.OK},
	} {
		if _, err := r.Client.UnaryCall(soon(t), tc.in, tc.opt); status.Code(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = r.Client.EmptyCall(metadata.AppendToOutgoingContext(soon(t), "big", strings.Repeat("x", maxBlocks)),
		&pb.Empty{})
	if status.Code(err) != codes.Internal {
		t.Errorf("more metadata than the server takes: %v", err)
	}
	rpctest.Unary(t, r.Target) // nothing of that broke the connection
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Client.EmptyCall(ctx, &pb.Empty{}); status.Code(err) != codes.Canceled {
		t.Errorf("canceled before it began: %v", err)
	}
}

// token is a per-call credential.
type token struct{ secure bool }

func (k token) GetRequestMetadata(_ context.Context, uri ...string) (map[string]string, error) {
	if len(uri) != 1 || !strings.HasPrefix(uri[0], "https://") {
		return nil, errors.New("no uri")
	}
	return map[string]string{"authorization": "bearer x"}, nil
}
func (k token) RequireTransportSecurity() bool { return k.secure }

func TestOverTLS(t *testing.T) {
	server, pool := certificate(t)
	for _, a := range arms[:2] {
		t.Run(a.name, func(t *testing.T) {
			l, dial, kill := a.open(t)
			l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{server}})
			secured := func(ctx context.Context) (net.Conn, error) {
				c, err := dial(ctx)
				if err != nil {
					return nil, err
				}
				tc := tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "server.test"})
				if err := tc.HandshakeContext(ctx); err != nil {
					c.Close()
					return nil, err
				}
				return tc, nil
			}
			r := serve(t, a.network, l, secured, kill, Config{}, Config{})
			runAll(t, r.Target)
			var from peer.Peer
			_, err := r.Client.EmptyCall(soon(t), &pb.Empty{}, grpc.Peer(&from),
				grpc.PerRPCCredentials(token{secure: true}))
			must(t, err)
			if info, ok := from.AuthInfo.(credentials.TLSInfo); !ok || len(info.State.PeerCertificates) != 1 {
				t.Errorf("%+v", from.AuthInfo)
			}
		})
	}
}

func TestHealthAndReflectionServices(t *testing.T) {
	l, dial, _ := arms[0].open(t)
	srv, err := NewServer(Config{})
	must(t, err)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	reflection.Register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	ch, err := NewChannel(dial, Config{})
	must(t, err)
	defer func() { ch.Close(); srv.Stop(); must(t, <-served) }()
	h, err := healthpb.NewHealthClient(ch).Check(soon(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	if h.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(h.Status)
	}
	rs, err := reflectpb.NewServerReflectionClient(ch).ServerReflectionInfo(soon(t))
	must(t, err)
	must(t, rs.Send(&reflectpb.ServerReflectionRequest{
		MessageRequest: &reflectpb.ServerReflectionRequest_ListServices{}}))
	m, err := rs.Recv()
	must(t, err)
	if got := m.GetListServicesResponse().String(); !strings.Contains(got, "grpc.health.v1.Health") {
		t.Error(got)
	}
	must(t, rs.CloseSend())
	if _, err := rs.Recv(); err != io.EOF {
		t.Error(err)
	}
}

// More calls than the server takes at once wait for a place, or for their deadline.
func TestCallsWaitForAPlace(t *testing.T) {
	r := newRPC(t, arms[1], Config{}, Config{MaxStreams: 2})
	ctx, cancel := context.WithCancel(soon(t))
	for range 2 {
		go r.Client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: rpctest.Block})
	}
	r.svc.AwaitBegun(2)
	short, end := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer end()
	if _, err := r.Client.EmptyCall(short, &pb.Empty{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("without a place: %v", err)
	}
	got := make(chan error, 1)
	go func() { _, err := r.Client.EmptyCall(soon(t), &pb.Empty{}); got <- err }()
	cancel()
	rpctest.Within(t, "a call that waits for a place", func() { must(t, <-got) })
}

// A deadline holds although the server does not answer, and the connection with it.
func TestDeadlinesHoldAndLeaveTheConnection(t *testing.T) {
	everywhere(t, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 5 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i)*time.Millisecond)
					if _, err := r.Client.UnaryCall(ctx,
						&pb.SimpleRequest{ResponseSize: rpctest.Block}); status.Code(err) != codes.DeadlineExceeded {
						t.Errorf("%v", err)
					}
					cancel()
					if _, err := r.Client.EmptyCall(soon(t), &pb.Empty{}); err != nil {
						t.Errorf("%v", err)
					}
				}
			})
		}
		rpctest.Within(t, "calls with deadlines", wg.Wait)
	})
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []Config{{MaxRecvMsgSize: -1}, {MaxSendMsgSize: -1}, {Window: 1}, {MaxStreams: -1},
		{MaxStreams: maxStreams + 1}} {
		if _, err := NewServer(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
		if _, err := NewChannel(nil, cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// The server learns nothing of a call that ended before anything of it was sent: it
// would take that for a breach of the protocol.
func TestCallsNeverSentAreNeverReset(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	for range 3 {
		_, err := r.Client.UnaryCall(soon(t), &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 2000)}},
			grpc.MaxCallSendMsgSize(1000))
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // for a reset to be sent, if there were one
		_, err = r.Client.EmptyCall(soon(t), &pb.Empty{})
		must(t, err)
	}
}

// A message that cannot be sent ends the call for who waits for its answers, too.
func TestAMessageThatIsTooLongEndsTheWait(t *testing.T) {
	for _, a := range []arm{arms[1], arms[3]} {
		t.Run(a.name, func(t *testing.T) {
			r := newRPC(t, a, Config{MaxSendMsgSize: 1000}, Config{})
			s, err := r.Client.FullDuplexCall(soon(t))
			must(t, err)
			got := make(chan error, 1)
			go func() {
				_, err := s.Recv()
				got <- err
			}()
			time.Sleep(5 * time.Millisecond) // most often it waits by then
			err = s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, 2000)}})
			if status.Code(err) != codes.ResourceExhausted {
				t.Errorf("sent: %v", err)
			}
			if err := <-got; status.Code(err) != codes.ResourceExhausted {
				t.Errorf("received: %v", err)
			}
		})
	}
}
