package interop

import (
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	stock "google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

type suite struct {
	conform.Case
	// lacks is why the case does not apply to a form; nil or "" when it does.
	lacks func(carrier.Form) string
	alone bool // its server is a process that it may kill
	times int  // how many limits it has, as it moves that much; 0 is 1
	run   func(*env)
}

func must(id, clause, requirement string, run func(*env)) suite {
	return suite{Case: conform.Case{ID: id, Clause: clause, Requirement: requirement}, run: run}
}

// alone makes a case whose server is a process that it may kill.
func alone(id, clause, requirement string, run func(*env)) suite {
	s := must(id, clause, requirement, run)
	s.alone = true
	return s
}

func (s suite) lacking(why func(carrier.Form) string) suite { s.lacks = why; return s }

func (s suite) taking(times int) suite { s.times = times; return s }

func (s *suite) limit(one time.Duration) time.Duration { return time.Duration(max(s.times, 1)) * one }

// lack is the reason of a case that cannot run; empty when it can.
func (s *suite) lack(f carrier.Form, shared bool) string {
	if s.alone && shared {
		return "client and server share a process, and none can die alone"
	}
	if s.lacks == nil {
		return ""
	}
	return s.lacks(f)
}

func always(why string) func(carrier.Form) string { return func(carrier.Form) string { return why } }

func notFused(why string) func(carrier.Form) string {
	return func(f carrier.Form) string {
		if f.Frames() {
			return why
		}
		return ""
	}
}

func suites() []suite {
	return slices.Concat(grpcCases(), callCases(), serviceCases, tlsCases, channelCases, fallbackCases, configCases,
		sizeCases, deathCases)
}

// Catalogue lists all cases in the order they run. They have no Run: [Run] gives each a process.
func Catalogue() []conform.Case {
	var all []conform.Case
	for _, s := range suites() {
		all = append(all, s.Case)
	}
	return all
}

func find(id string) *suite {
	all := suites()
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}

func callCases() []suite {
	var all []suite
	for _, c := range rpctest.Cases {
		all = append(all, suite{
			Case: conform.Case{ID: "call/" + strings.ReplaceAll(c.Name, " ", "-"), Clause: c.Clause, Requirement: c.Requirement},
			run: func(e *env) {
				asked := e.open(toCalls, dialing{}) // questions go over a connection of their own
				c.Run(e, rpctest.Target{Client: e.open(toCalls, dialing{}).stub, Network: e.network(), Timeout: e.limit,
					Waiting: func() (begun, ended int32) { n := e.ask(asked); return n.Begun, n.Ended }})
			},
		})
	}
	return all
}

var serviceCases = []suite{
	must("svc/health", "grpc/grpc doc/health-checking.md",
		"The health service answers a check and a watch with SERVING.", func(e *env) {
			h := healthpb.NewHealthClient(e.open(toInterop, dialing{}).conn)
			r, err := h.Check(e.soon(), &healthpb.HealthCheckRequest{})
			e.must(err, "check")
			w, err := h.Watch(e.soon(), &healthpb.HealthCheckRequest{})
			e.must(err, "watch")
			first, err := w.Recv()
			e.must(err, "watch")
			for _, s := range []healthpb.HealthCheckResponse_ServingStatus{r.Status, first.Status} {
				if s != healthpb.HealthCheckResponse_SERVING {
					e.Errorf("health is %v", s)
				}
			}
		}),
	must("svc/reflection", "grpc/grpc doc/server-reflection.md",
		"Reflection lists the services and describes them.", func(e *env) {
			s, err := reflectpb.NewServerReflectionClient(e.open(toInterop, dialing{}).conn).ServerReflectionInfo(e.soon())
			e.must(err, "open reflection")
			ask := func(r *reflectpb.ServerReflectionRequest) *reflectpb.ServerReflectionResponse {
				e.must(s.Send(r), "ask reflection")
				m, err := s.Recv()
				e.must(err, "ask reflection")
				return m
			}
			list := &reflectpb.ServerReflectionRequest_ListServices{}
			m := ask(&reflectpb.ServerReflectionRequest{MessageRequest: list})
			if got := m.GetListServicesResponse().String(); !strings.Contains(got, "grpc.testing.TestService") {
				e.Errorf("services: %v", got)
			}
			file := &reflectpb.ServerReflectionRequest_FileContainingSymbol{
				FileContainingSymbol: "grpc.testing.TestService"}
			m = ask(&reflectpb.ServerReflectionRequest{MessageRequest: file})
			if len(m.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
				e.Errorf("no description of the service: %v", m)
			}
			e.must(s.CloseSend(), "close reflection")
		}),
}

const description = "grpc/grpc doc/interop-test-descriptions.md, "

const cloud = "needs an account and the metadata service of Google's cloud"

const onlyClientConn = "grpc-go's function wants a *grpc.ClientConn, which a fused channel is not"

// grpcCases are the functions of google.golang.org/grpc/interop. They end the process when they fail.
func grpcCases() []suite {
	plain := func(do func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) func(*env) {
		return func(e *env) { do(e.ctx, e.open(toInterop, dialing{}).stub) }
	}
	all := []suite{
		of("empty_unary", "A call with an empty request and an empty response succeeds.", plain(stock.DoEmptyUnaryCall)),
		of("large_unary", "A request of 271828 bytes and a response of 314159 arrive whole.", plain(stock.DoLargeUnaryCall)),
		of("client_streaming", "Four messages of a client add up to one response.", plain(stock.DoClientStreaming)),
		of("server_streaming", "Four messages of a server arrive with their sizes, in order.",
			plain(stock.DoServerStreaming)),
		of("ping_pong", "Requests and responses alternate on one stream.", plain(stock.DoPingPong)),
		of("empty_stream", "A stream without messages in either direction ends well.", plain(stock.DoEmptyStream)),
		of("timeout_on_sleeping_server", "A deadline of 1 ms ends a stream with DEADLINE_EXCEEDED.",
			plain(stock.DoTimeoutOnSleepingServer)),
		of("cancel_after_begin", "A call cancelled before its first message ends with CANCELLED.",
			plain(stock.DoCancelAfterBegin)),
		of("cancel_after_first_response", "A stream cancelled after its first response ends with CANCELLED.",
			plain(stock.DoCancelAfterFirstResponse)),
		of("custom_metadata", "Initial and trailing metadata, binary included, come back on unary calls and streams.",
			plain(stock.DoCustomMetadata)),
		of("status_code_and_message", "The server's status code and message reach the client on unary calls and "+
			"streams.", plain(stock.DoStatusCodeAndMessage)),
		of("special_status_message", "White space and Unicode outside the BMP survive in a status message.",
			plain(stock.DoSpecialStatusMessage)),
		of("unimplemented_method", "A method that the service does not have is UNIMPLEMENTED.", unimplementedMethod),
		of("unimplemented_service", "A service that the server does not have is UNIMPLEMENTED.", func(e *env) {
			stock.DoUnimplementedService(e.ctx, pb.NewUnimplementedServiceClient(e.open(toInterop, dialing{}).conn))
		}),
		of("pick_first_unary", "A hundred calls of one channel reach the same server.",
			func(e *env) { stock.DoPickFirstUnary(e.ctx, e.open(toInterop, dialing{}).stub) }),
		of("rpc_soak", "Large calls one after another on one channel all succeed.", soak(false)),
		of("channel_soak", "Large calls, each on a channel of its own, all succeed.", soak(true)),
		of("orca_per_rpc", "A load report travels in the trailer of a call.", func(e *env) {
			const config = `{"loadBalancingConfig":[{"test_backend_metrics_load_balancer":{}}]}` // package interop has it
			stock.DoORCAPerRPCTest(e.ctx, e.open(toInterop, dialing{config: config}).stub)
		}).lacking(notFused(fused.Unsupported["orca.CallMetricsServerOption"])),
		of("orca_oob", "Load reports travel on a stream of their own.", nil).
			lacking(always("needs load reports more often than every 30 s, which only grpc-go's own packages can ask " +
				"of a server")),
	}
	for _, name := range []string{"compute_engine_creds", "service_account_creds", "jwt_token_creds",
		"oauth2_auth_token", "per_rpc_creds", "google_default_credentials", "compute_engine_channel_credentials"} {
		all = append(all, of(name, "Calls carry credentials of Google's cloud.", nil).lacking(always(cloud)))
	}
	return all
}

func of(name, requirement string, run func(*env)) suite {
	return must("interop/"+strings.ReplaceAll(name, "_", "-"), description+name, requirement, run)
}

func unimplementedMethod(e *env) {
	c := e.open(toInterop, dialing{})
	if cc, ok := c.conn.(*grpc.ClientConn); ok {
		stock.DoUnimplementedMethod(e.ctx, cc)
		return
	}
	e.note(onlyClientConn + ": asked through the stub")
	if _, err := c.stub.UnimplementedCall(e.ctx, &pb.Empty{}); status.Code(err) != codes.Unimplemented {
		e.Fatalf("UnimplementedCall: %v, want code %v", err, codes.Unimplemented)
	}
}

// soak uses the description's sizes, and few iterations: it looks for calls that hang, not for figures.
func soak(anew bool) func(*env) {
	return func(e *env) {
		shared := e.open(toInterop, dialing{})
		if _, ok := shared.conn.(*grpc.ClientConn); !ok {
			soakByStub(e, shared, anew)
			return
		}
		stock.DoSoakTest(e.ctx, stock.SoakTestConfig{
			RequestSize: 271828, ResponseSize: 314159, Iterations: 10, NumWorkers: 1,
			PerIterationMaxAcceptableLatency: e.limit, OverallTimeout: e.limit, ServerAddr: e.peer.Addrs[toInterop],
			ChannelForTest: func() (*grpc.ClientConn, func()) {
				if !anew {
					return shared.conn.(*grpc.ClientConn), func() {}
				}
				c := e.open(toInterop, dialing{})
				return c.conn.(*grpc.ClientConn), func() {}
			},
		})
	}
}

func soakByStub(e *env, c *client, anew bool) {
	e.note(onlyClientConn + ": asked through the stub")
	for i := range 10 {
		if anew {
			c = e.open(toInterop, dialing{})
		}
		begun := time.Now()
		m, err := c.stub.UnaryCall(e.soon(),
			&pb.SimpleRequest{ResponseType: pb.PayloadType_COMPRESSABLE, ResponseSize: 314159,
				Payload: &pb.Payload{Body: make([]byte, 271828)}})
		e.must(err, "call")
		if n := len(m.GetPayload().GetBody()); n != 314159 {
			e.Fatalf("call %d: %d bytes came back, want 314159", i, n)
		}
		if took := time.Since(begun); took > e.limit {
			e.Errorf("call %d took %v", i, took)
		}
	}
}
