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
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
)

const roundRobin = `{"loadBalancingConfig":[{"round_robin":{}}]}`

// all waits until calls reach n servers and all succeed: those on their way to one that dies do not.
func (f *running) all(t *testing.T, n int) {
	t.Helper()
	until(t, fmt.Sprintf("calls that reach %d servers", n), func() bool {
		seen, err := f.ask(t, 4*n, grpc.WaitForReady(true))
		return err == nil && len(seen) == n
	})
}

func TestRoundRobinReachesAllServersAndSurvivesOne(t *testing.T) {
	sideBySide(t, program{service: &script{}, servers: 3, config: roundRobin}, func(t *testing.T, f *running) {
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
	sideBySide(t, program{service: &script{}, servers: 2, config: `{}`}, func(t *testing.T, f *running) {
		if seen := f.who(t, 10); seen[f.addrs[0]] != 10 {
			t.Errorf("%v, want %s", seen, f.addrs[0])
		}
		f.stop[0]()
		until(t, "calls of the second server", func() bool {
			seen, err := f.ask(t, 1, grpc.WaitForReady(true))
			return err == nil && seen[f.addrs[1]] == 1
		})
	})
}

func TestTheResolversServiceConfigChoosesThePolicy(t *testing.T) {
	sideBySide(t, program{service: &script{}, servers: 2, config: `{}`}, func(t *testing.T, f *running) {
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
	sideBySide(t, program{service: &script{}, servers: 1, config: `{}`}, func(t *testing.T, f *running) {
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
			p := program{service: svc, servers: 1, config: fmt.Sprintf(retries, c.more)}
			sideBySide(t, p, func(t *testing.T, f *running) {
				f.who(t, 1)
				svc.fail.Store(c.fail)
				svc.tries.Store(0)
				var finished atomic.Int32
				var header, trailer metadata.MD
				got, err := f.UnaryCall(soon(t), &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("kept")}},
					grpc.Header(&header), grpc.Trailer(&trailer), grpc.OnFinish(func(error) { finished.Add(1) }))
				if status.Code(err) != c.want || err == nil && string(got.Payload.Body) != "kept" || svc.tries.Load() != c.tries {
					t.Errorf("unary: %v, %v behind %d tries, want %v behind %d", got, err, svc.tries.Load(), c.want, c.tries)
				}
				if n := finished.Load(); n != 1 {
					t.Errorf("OnFinish ran %d times", n)
				}
				if err == nil && c.tries > 1 && strings.Join(header["previous"], "") != fmt.Sprint(c.tries-1) {
					t.Errorf("header %v, want previous %d", header, c.tries-1)
				}
				if err != nil && len(c.tail) > 0 && len(trailer["grpc-retry-pushback-ms"]) != 1 {
					t.Errorf("trailer %v", trailer)
				}
				if c.more != "" {
					return // the tokens are spent
				}
				svc.fail.Store(c.fail)
				svc.tries.Store(0)
				s := opened(t, f)
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
					t.Errorf("stream: %d messages, %v behind %d tries, want %v behind %d", n, err, svc.tries.Load(), c.want, c.tries)
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
	sideBySide(t, program{service: svc, servers: 1, config: config}, func(t *testing.T, f *running) {
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
		until(t, "failing fast", func() bool {
			_, err := f.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(false))
			return status.Code(err) == codes.Unavailable
		})
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
	p := program{servers: 1, config: `{"loadBalancingConfig":[{"judging_test":{}}]}`}
	p.service = &script{unary: func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		// cpu_utilization 0.5
		grpc.SetTrailer(ctx, metadata.Pairs("t", "v", loadKey, "\x09\x00\x00\x00\x00\x00\x00\xe0\x3f"))
		return &pb.SimpleResponse{Username: strings.Join(md["chosen"], "")}, nil
	}}
	sideBySide(t, p, func(t *testing.T, f *running) {
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
	h := health.NewServer()
	p := program{service: &script{}, health: h, servers: 1,
		config: `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":"shop"}}`}
	sideBySide(t, p, func(t *testing.T, f *running) {
		h.SetServingStatus("shop", healthpb.HealthCheckResponse_NOT_SERVING)
		_, err := f.EmptyCall(soon(t), &pb.Empty{})
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "NOT_SERVING") {
			t.Errorf("an ill service: %v", err)
		}
		h.SetServingStatus("shop", healthpb.HealthCheckResponse_SERVING)
		empty(t, f, grpc.WaitForReady(true))
	})
}

var configs = []string{
	`{}`, ``, `[]`, `{"methodConfig":[{"name":[{"service":"a"}],"timeout":"1.5s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"1.5"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"-0.000000001s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":".s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"315576000001s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"timeout":"99999999999s"}]}`,
	`{"methodConfig":[{"name":[{"service":"a"},{"service":"a"}]}]}`,
	`{"methodConfig":[{"name":[{"method":"m"}]}]}`,
	`{"methodConfig":[{"name":[{}]}]}`,
	`{"methodConfig":[{"name":[{"service":"a","method":"m"}],"retryPolicy":{"maxAttempts":9,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE",4]}}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"retryPolicy":{"maxAttempts":1,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["UNAVAILABLE"]}}]}`,
	`{"methodConfig":[{"name":[{"service":"a"}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"1s",` +
		`"maxBackoff":"2s","backoffMultiplier":1.5,"retryableStatusCodes":["NO_SUCH"]}}]}`,
	`{"retryThrottling":{"maxTokens":1001,"tokenRatio":1}}`,
	`{"methodConfig":[],"retryThrottling":{"maxTokens":10,"tokenRatio":1}}`,
	`{"loadBalancingPolicy":"round_robin"}`, `{"loadBalancingPolicy":"no_such"}`,
	`{"loadBalancingConfig":[{"no_such":{}},{"round_robin":{}}]}`, `{"loadBalancingConfig":[{"no_such":{}}]}`,
	`{"loadBalancingConfig":[{}]}`,
	`{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":true}}]}`,
	`{"loadBalancingConfig":[{"pick_first":{"shuffleAddressList":3}}]}`,
	`{"healthCheckConfig":{"serviceName":"s"}}`, `{"methodConfig":[{"waitForReady":true}]}`, `{"methodConfig":3}`,
}

// grpcParser is grpc-go's parser, as its ClientConn lends it to resolvers.
func grpcParser(t testing.TB) func(string) error {
	r := manual.NewBuilderWithScheme("parser")
	r.InitialState(resolver.State{})
	cc, err := grpc.NewClient("parser:///x", grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	cc.Connect()
	lent := r.CC()
	cc.Close()
	return func(text string) error { return lent.ParseServiceConfig(text).Err }
}

// The service config comes from whoever answers for a name. grpc-go and this package take and refuse the same ones.
func FuzzServiceConfig(f *testing.F) {
	for _, text := range configs {
		f.Add(text)
	}
	theirs := grpcParser(f)
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := parseServiceConfig(text)
		if (err == nil) != (theirs(text) == nil) {
			t.Errorf("%q: %v, grpc-go %v", text, err, theirs(text))
		}
		if err == nil {
			sc.method("/a/m")
		}
	})
}
