package fused

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	_ "google.golang.org/grpc/balancer/roundrobin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	_ "google.golang.org/grpc/orca" // links load reports
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
)

// fleet is some servers, and clients of all of them by a resolver that a test drives.
type fleet struct {
	form  string
	addrs []string
	stop  []func() // of each server; idempotent
	find  *manual.Resolver
	cc    grpc.ClientConnInterface
	pb.TestServiceClient
}

const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// fleets runs one body on grpc-go over TCP, on grpc-go over RDMA and on this package,
// each with n servers of one service, under grpc-go's resolvers and policies.
func fleets(t *testing.T, n int, svc pb.TestServiceServer, config string, body func(t *testing.T, f *fleet)) {
	t.Helper()
	for _, form := range []string{"grpc(tcp)", "grpc(dropin)+iwarp", "grpc(fused)+iwarp"} {
		t.Run(form, func(t *testing.T) {
			f := &fleet{form: form, find: manual.NewBuilderWithScheme("fleet")}
			var addrs []resolver.Address
			var dial func(context.Context, string) (net.Conn, error)
			for range n {
				l, d, _ := arms[1].open(t)
				if form == "grpc(tcp)" {
					var err error
					l, err = net.Listen("tcp", "127.0.0.1:0")
					must(t, err)
					dial = func(ctx context.Context, addr string) (net.Conn, error) {
						return new(net.Dialer).DialContext(ctx, "tcp", addr)
					}
				} else {
					prev, own := dial, l.Addr().String()
					dial = func(ctx context.Context, addr string) (net.Conn, error) {
						if addr == own {
							return d(ctx)
						}
						return prev(ctx, addr)
					}
				}
				f.serve(t, l, svc)
				f.addrs = append(f.addrs, l.Addr().String())
				addrs = append(addrs, resolver.Address{Addr: l.Addr().String()})
			}
			f.find.InitialState(resolver.State{Addresses: addrs})
			if strings.HasPrefix(form, "grpc(fused)") {
				ch, err := NewClient("fleet:///all.test", dial, Config{Resolvers: []resolver.Builder{f.find},
					ServiceConfig: config})
				must(t, err)
				t.Cleanup(func() { must(t, ch.Close()) })
				f.cc = ch
			} else {
				cc, err := grpc.NewClient("fleet:///all.test", grpc.WithTransportCredentials(insecure.NewCredentials()),
					grpc.WithResolvers(f.find),
					grpc.WithContextDialer(dial), grpc.WithDefaultServiceConfig(config))
				must(t, err)
				t.Cleanup(func() { cc.Close() })
				f.cc = cc
			}
			f.TestServiceClient = pb.NewTestServiceClient(f.cc)
			body(t, f)
		})
	}
}

func (f *fleet) serve(t *testing.T, l net.Listener, svc pb.TestServiceServer) {
	t.Helper()
	var s interface {
		grpc.ServiceRegistrar
		Serve(net.Listener) error
		Stop()
	} = grpc.NewServer()
	if strings.HasPrefix(f.form, "grpc(fused)") {
		var err error
		s, err = NewServer(Config{})
		must(t, err)
	}
	pb.RegisterTestServiceServer(s, svc)
	h := health.NewServer()
	healthpb.RegisterHealthServer(s, h)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	f.stop = append(f.stop, s.Stop)
	t.Cleanup(func() { s.Stop(); <-served })
}

// who calls n times and counts the servers that answered.
func (f *fleet) who(t *testing.T, n int, opts ...grpc.CallOption) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for range n {
		var p peer.Peer
		if _, err := f.EmptyCall(soon(t), &pb.Empty{}, append(opts, grpc.Peer(&p))...); err != nil {
			t.Fatal(err)
		}
		seen[p.Addr.String()]++
	}
	return seen
}

// all waits until calls reach n servers and all succeed: those on their way to one
// that dies do not.
func (f *fleet) all(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(testTimeout); ; {
		seen, bad := map[string]int{}, error(nil)
		for range 4 * n {
			var p peer.Peer
			if _, err := f.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(true), grpc.Peer(&p)); err != nil {
				bad = err
			} else {
				seen[p.Addr.String()]++
			}
		}
		if len(seen) == n && bad == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("calls reach %v, %v, want %d servers", seen, bad, n)
		}
	}
}

func TestRoundRobinReachesAllServersAndSurvivesOne(t *testing.T) {
	fleets(t, 3, &script{}, roundRobin, func(t *testing.T, f *fleet) {
		f.all(t, 3)
		for addr, n := range f.who(t, 30) {
			if n != 10 {
				t.Errorf("%d of 30 calls to %s", n, addr)
			}
		}
		f.stop[1]()
		f.all(t, 2)
		if seen := f.who(t, 10); seen[f.addrs[1]] > 0 || len(seen) != 2 {
			t.Errorf("behind the death of %s: %v", f.addrs[1], seen)
		}
		// The resolver forgets another: calls go to the last.
		f.find.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: f.addrs[2]}}})
		f.all(t, 1)
		if seen := f.who(t, 10); seen[f.addrs[2]] != 10 {
			t.Errorf("of %s alone: %v", f.addrs[2], seen)
		}
	})
}

func TestPickFirstTakesTheFirstThatAnswers(t *testing.T) {
	fleets(t, 2, &script{}, `{}`, func(t *testing.T, f *fleet) {
		if seen := f.who(t, 10); seen[f.addrs[0]] != 10 {
			t.Errorf("%v, want %s", seen, f.addrs[0])
		}
		f.stop[0]()
		for end := time.Now().Add(testTimeout); ; {
			var p peer.Peer
			if _, err := f.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(true), grpc.Peer(&p)); err == nil &&
				p.Addr.String() == f.addrs[1] {
				return
			}
			if time.Now().After(end) {
				t.Fatal("the second server is never reached")
			}
		}
	})
}

// A policy follows the service config that the resolver brings.
func TestTheResolversServiceConfigChoosesThePolicy(t *testing.T) {
	fleets(t, 2, &script{}, `{}`, func(t *testing.T, f *fleet) {
		if seen := f.who(t, 6); len(seen) != 1 {
			t.Errorf("pick_first: %v", seen)
		}
		addrs := []resolver.Address{{Addr: f.addrs[0]}, {Addr: f.addrs[1]}}
		f.find.UpdateState(resolver.State{Addresses: addrs, ServiceConfig: f.find.CC().ParseServiceConfig(roundRobin)})
		f.all(t, 2)
		// One that cannot be read leaves the last in force.
		f.find.UpdateState(resolver.State{Addresses: addrs,
			ServiceConfig: f.find.CC().ParseServiceConfig(`{"loadBalancingConfig":[{"no_such":{}}]}`)})
		f.all(t, 2)
	})
}

func TestResolverErrorsReachCalls(t *testing.T) {
	fleets(t, 1, &script{}, `{}`, func(t *testing.T, f *fleet) {
		f.find.InitialState(resolver.State{})
		f.find.BuildCallback = func(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) {
			cc.ReportError(errors.New("the map is torn"))
		}
		_, err := f.EmptyCall(soon(t), &pb.Empty{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%v", err)
		}
		f.find.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: f.addrs[0]}}})
		f.who(t, 1, grpc.WaitForReady(true))
	})
}

// flaky fails the first calls with a code, and says how often it was tried.
type flaky struct {
	script
	fail    atomic.Int32
	code    codes.Code
	header  bool
	tries   atomic.Int32
	trailer metadata.MD
}

func (s *flaky) answer(ctx context.Context) error {
	s.tries.Add(1)
	if s.fail.Add(-1) < 0 {
		md, _ := metadata.FromIncomingContext(ctx)
		grpc.SetHeader(ctx, metadata.Pairs("previous", strings.Join(md["grpc-previous-rpc-attempts"], ",")))
		return nil
	}
	if s.header {
		grpc.SendHeader(ctx, metadata.Pairs("a", "b"))
	}
	grpc.SetTrailer(ctx, s.trailer)
	return status.Error(s.code, "not yet")
}

func (s *flaky) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Payload: in.Payload}, s.answer(ctx)
}

func (s *flaky) FullDuplexCall(d duplex) error {
	first, err := d.Recv()
	if err != nil {
		return err
	}
	if err := s.answer(d.Context()); err != nil {
		return err
	}
	for in := first; err == nil; in, err = d.Recv() {
		if err := d.Send(&pb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
			return err
		}
	}
	return nil
}

const retries = `{"methodConfig":[{"name":[{"service":"grpc.testing.TestService"}],"retryPolicy":{"maxAttempts":4,
	"initialBackoff":"0.002s","maxBackoff":"0.01s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]%s}`

func TestServiceConfigRetriesCalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		fail  int32
		code  codes.Code
		head  bool
		tail  metadata.MD
		more  string
		want  codes.Code
		tries int32
	}{
		{name: "well at once", tries: 1},
		{name: "well at the third", fail: 2, code: codes.Unavailable, tries: 3},
		{name: "never well", fail: 9, code: codes.Unavailable, want: codes.Unavailable, tries: 4},
		{name: "another code", fail: 1, code: codes.Aborted, want: codes.Aborted, tries: 1},
		{name: "behind a header", fail: 1, code: codes.Unavailable, head: true, want: codes.Unavailable, tries: 1},
		{name: "told to wait", fail: 1, code: codes.Unavailable, tail: metadata.Pairs("grpc-retry-pushback-ms", "1"),
			tries: 2},
		{name: "told not to", fail: 1, code: codes.Unavailable, tail: metadata.Pairs("grpc-retry-pushback-ms", "-1"),
			want: codes.Unavailable, tries: 1},
		{name: "throttled", fail: 9, code: codes.Unavailable,
			more: `,"retryThrottling":{"maxTokens":4,"tokenRatio":0.1}`, want: codes.Unavailable, tries: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := &flaky{code: c.code, header: c.head, trailer: c.tail}
			fleets(t, 1, svc, fmt.Sprintf(retries, c.more), func(t *testing.T, f *fleet) {
				f.who(t, 1)
				svc.fail.Store(c.fail)
				svc.tries.Store(0)
				var finished atomic.Int32
				var header, trailer metadata.MD
				got, err := f.UnaryCall(soon(t), &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("kept")}},
					grpc.Header(&header), grpc.Trailer(&trailer),
					grpc.OnFinish(func(error) { finished.Add(1) }))
				if status.Code(err) != c.want || err == nil && string(got.Payload.Body) != "kept" ||
					svc.tries.Load() != c.tries {
					t.Errorf("unary: %v, %v behind %d tries, want %v behind %d", got, err, svc.tries.Load(), c.want,
						c.tries)
				}
				if n := finished.Load(); n != 1 {
					t.Errorf("OnFinish ran %d times", n)
				}
				if want := []string{""}; err == nil && c.tries > 1 {
					want[0] = fmt.Sprint(c.tries - 1)
					if strings.Join(header["previous"], "") != want[0] {
						t.Errorf("header %v, want previous %s", header, want[0])
					}
				}
				if err != nil && len(c.tail) > 0 && len(trailer["grpc-retry-pushback-ms"]) != 1 {
					t.Errorf("trailer %v", trailer)
				}
				if c.more != "" {
					return // the tokens are spent
				}
				svc.fail.Store(c.fail)
				svc.tries.Store(0)
				s, err := f.FullDuplexCall(soon(t))
				must(t, err)
				for i := range 3 {
					if err := s.Send(&pb.StreamingOutputCallRequest{
						Payload: &pb.Payload{Body: []byte{byte(i)}}}); err != nil && err != io.EOF {
						t.Fatal(err)
					}
				}
				s.CloseSend()
				var n int
				var m *pb.StreamingOutputCallResponse
				for m, err = s.Recv(); err == nil; m, err = s.Recv() {
					if len(m.Payload.Body) != 1 || int(m.Payload.Body[0]) != n {
						t.Errorf("message %d is %v", n, m.Payload.Body)
					}
					n++
				}
				if err == io.EOF {
					err = nil
				}
				if status.Code(err) != c.want || svc.tries.Load() != c.tries || err == nil && n != 3 {
					t.Errorf("stream: %d messages, %v behind %d tries, want %v behind %d", n, err, svc.tries.Load(),
						c.want, c.tries)
				}
			})
		})
	}
}

func TestServiceConfigBoundsCalls(t *testing.T) {
	svc := &script{unary: func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		if d, ok := ctx.Deadline(); !ok || time.Until(d) > time.Second {
			return nil, status.Errorf(codes.FailedPrecondition, "deadline %v", ok)
		}
		if in.FillServerId {
			<-ctx.Done()
		}
		return &pb.SimpleResponse{Payload: &pb.Payload{Body: make([]byte, in.ResponseSize)}}, ctx.Err()
	}}
	const config = `{"methodConfig":[
		{"name":[{"service":"grpc.testing.TestService","method":"UnaryCall"}],"timeout":"0.3s",
		 "maxRequestMessageBytes":100,"maxResponseMessageBytes":200},
		{"name":[{"service":"grpc.testing.TestService"}],"waitForReady":true}]}`
	fleets(t, 1, svc, config, func(t *testing.T, f *fleet) {
		_, err := f.UnaryCall(context.Background(), &pb.SimpleRequest{FillServerId: true})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("timeout: %v", err)
		}
		for _, c := range []struct {
			up, down int
			want     codes.Code
		}{{10, 10, codes.OK}, {200, 10, codes.ResourceExhausted}, {10, 300, codes.ResourceExhausted}} {
			_, err := f.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: int32(c.down),
				Payload: &pb.Payload{Body: make([]byte, c.up)}})
			if status.Code(err) != c.want {
				t.Errorf("%d up, %d down: %v, want %v", c.up, c.down, err, c.want)
			}
		}
		// A method that waits for ready by config, and the option that says otherwise.
		f.stop[0]()
		end := time.Now().Add(testTimeout)
		for {
			_, err := f.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(false))
			if status.Code(err) == codes.Unavailable {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("fail-fast: %v", err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := f.EmptyCall(ctx, &pb.Empty{}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("waiting for ready: %v", err)
		}
	})
}

// A policy of the user's own, about pick_first, sees how each call ends and may forbid it.
func TestPoliciesLearnHowCallsEnd(t *testing.T) {
	balancer.Register(judging{})
	fleets(t, 1, &script{unary: func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		// cpu_utilization 0.5
		grpc.SetTrailer(ctx, metadata.Pairs("t", "v", loadKey, "\x09\x00\x00\x00\x00\x00\x00\xe0\x3f"))
		return &pb.SimpleResponse{Username: strings.Join(md["chosen"], "")}, nil
	}}, `{"loadBalancingConfig":[{"judging_test":{}}]}`, func(t *testing.T, f *fleet) {
		m, err := f.UnaryCall(soon(t), &pb.SimpleRequest{})
		if err != nil || m.Username != "by policy" {
			t.Fatalf("%v, %v", m, err)
		}
		d := <-judged
		load, _ := d.ServerLoad.(interface{ GetCpuUtilization() float64 })
		if d.Err != nil || !d.BytesSent || !d.BytesReceived || d.Trailer.Get("t")[0] != "v" || load == nil ||
			load.GetCpuUtilization() != 0.5 {
			t.Errorf("the policy learns %+v", d)
		}
		_, err = f.UnaryCall(metadata.AppendToOutgoingContext(soon(t), "drop", "1"), &pb.SimpleRequest{},
			grpc.WaitForReady(true))
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("a dropped call: %v", err)
		}
	})
}

var judged = make(chan balancer.DoneInfo, 1)

// judging is pick_first with a word of its own in each call.
type judging struct{}

func (judging) Name() string { return "judging_test" }
func (judging) Build(cc balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	return balancer.Get("pick_first").Build(judgingConn{cc}, o)
}

type judgingConn struct{ balancer.ClientConn }

func (c judgingConn) UpdateState(s balancer.State) {
	s.Picker = judgingPicker{s.Picker}
	c.ClientConn.UpdateState(s)
}

type judgingPicker struct{ balancer.Picker }

func (p judgingPicker) Pick(i balancer.PickInfo) (balancer.PickResult, error) {
	if md, _ := metadata.FromOutgoingContext(i.Ctx); len(md["drop"]) > 0 {
		return balancer.PickResult{}, status.Error(codes.PermissionDenied, "dropped")
	}
	r, err := p.Picker.Pick(i)
	if err == nil {
		r.Metadata = metadata.Pairs("chosen", "by policy")
		r.Done = func(d balancer.DoneInfo) { judged <- d }
	}
	return r, err
}

// rdma:/// through grpcrdma's resolver and its dialler: the spelling of a user.
func TestTargetsOfRDMAAreBalanced(t *testing.T) {
	var addrs []string
	f := &fleet{form: "grpc(fused)"}
	var n *grpcrdma.Net
	for range 2 {
		l, _, near := overIWARPNet(t)
		n = near
		f.serve(t, l, &script{})
		addrs = append(addrs, l.Addr().String())
	}
	ch, err := NewClient("rdma:///"+strings.Join(addrs, ","), (&grpcrdma.Dialer{Net: n, NoFallback: true}).DialContext,
		Config{Resolvers: []resolver.Builder{grpcrdma.Resolver()}, ServiceConfig: roundRobin})
	must(t, err)
	defer ch.Close()
	f.TestServiceClient = pb.NewTestServiceClient(ch)
	seen := map[string]int{}
	for end := time.Now().Add(testTimeout); len(seen) < 2; {
		seen = f.who(t, 4)
		if time.Now().After(end) {
			t.Fatalf("%v", seen)
		}
	}
}

func TestBadTargetsAreRefused(t *testing.T) {
	dial := func(context.Context, string) (net.Conn, error) { return nil, io.EOF }
	for target, cfg := range map[string]Config{
		"rdma:///":  {},
		"%zz":       {},
		"dns:///":   {},
		"dns:///ok": {ServiceConfig: `{"loadBalancingConfig":[]}`},
		"dns:///o":  {MaxRecvMsgSize: -1},
	} {
		if target == "rdma:///" {
			cfg.Resolvers = []resolver.Builder{grpcrdma.Resolver()}
		}
		if ch, err := NewClient(target, dial, cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v, %v", target, ch, err)
		}
	}
}

// A service whose health is bad gets no calls (gRFC A17).
func TestHealthOfAServiceCounts(t *testing.T) {
	l, dial, _ := arms[1].open(t)
	srv, err := NewServer(Config{})
	must(t, err)
	pb.RegisterTestServiceServer(srv, &script{})
	h := health.NewServer()
	h.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(srv, h)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	ch, err := NewClient("passthrough:///x", func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) },
		Config{ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}],` +
			`"healthCheckConfig":{"serviceName":"shop"}}`})
	must(t, err)
	defer func() { must(t, ch.Close()); srv.Stop(); must(t, <-served) }()
	_, err = pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "NOT_SERVING") {
		t.Errorf("an ill service: %v", err)
	}
	h.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
	_, err = pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(true))
	must(t, err)
}
