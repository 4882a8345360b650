package fused

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// What gRPC's users rely on, as over HTTP/2.
func TestGRPCUnchanged(t *testing.T) {
	each(t, arms, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		runAll(t, r.Target)
	})
}

func each(t *testing.T, arms []arm, f func(t *testing.T, a arm)) {
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
	empty(t, r.Client)
	rpctest.Bidirectional(t, r.Target)
	const s = "/grpc.testing.TestService/"
	want := []string{"cu1", "cu2", "su1" + s + "EmptyCall", "su2" + s + "EmptyCall", "cs1", "cs2",
		"ss1" + s + "FullDuplexCall", "ss2" + s + "FullDuplexCall"}
	if !slices.Equal(seen, want) {
		t.Errorf("%v", seen)
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
		"unknown compressor":              {big, grpc.UseCompressor("no such"), codes.Internal},
		"unknown codec":                   {big, grpc.CallContentSubtype("no such"), codes.Internal},
		"an option that is not supported": {big, grpc.CallCustomCodec(oldCodec{}), codes.Unimplemented},
		"per-call credentials":            {big, grpc.PerRPCCredentials(token{}), codes.OK},
		"waiting for a connection":        {big, grpc.WaitForReady(true), codes.OK},
	} {
		if _, err := r.Client.UnaryCall(soon(t), tc.in, tc.opt); status.Code(err) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
		time.Sleep(2 * time.Millisecond) // for the breach that a reset of a call never sent would be
		empty(t, r.Client)
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
	each(t, arms[:2], func(t *testing.T, a arm) {
		l, dial, kill := a.open(t)
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{server}})
		secured := func(ctx context.Context) (net.Conn, error) {
			c, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return tls.Client(c, &tls.Config{RootCAs: pool, ServerName: rpctest.ServerName}), nil
		}
		r := serve(t, a.network, l, secured, kill, Config{}, Config{})
		runAll(t, r.Target)
		var from peer.Peer
		empty(t, r.Client, grpc.Peer(&from), grpc.PerRPCCredentials(token{secure: true}))
		if info, ok := from.AuthInfo.(credentials.TLSInfo); !ok || len(info.State.PeerCertificates) != 1 {
			t.Errorf("%+v", from.AuthInfo)
		}
	})
}

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
	each(t, arms, func(t *testing.T, a arm) {
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
		{MaxStreams: maxStreams + 1}, {Sinks: maxSinks + 1}} {
		if _, err := NewServer(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
		if _, err := NewChannel(nil, cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAMessageThatIsTooLongEndsTheWait(t *testing.T) {
	each(t, []arm{arms[1], arms[3]}, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{MaxSendMsgSize: 1000}, Config{})
		s := opened(t, r.Client)
		got := make(chan error, 1)
		go func() {
			_, err := s.Recv()
			got <- err
		}()
		time.Sleep(5 * time.Millisecond) // most often it waits by then
		err := s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, 2000)}})
		if status.Code(err) != codes.ResourceExhausted {
			t.Errorf("sent: %v", err)
		}
		if err := <-got; status.Code(err) != codes.ResourceExhausted {
			t.Errorf("received: %v", err)
		}
	})
}
