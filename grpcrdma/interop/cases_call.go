package interop

import (
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// promises is what each shared case requires, and by which clause.
var promises = map[string][2]string{
	"unary":    {"gRPC core concepts, unary RPC", "Calls of 0 to 80000 bytes return what they asked for."},
	"metadata": {"gRPC guide, metadata", "A header and a binary trailer come back."},
	"status": {"gRPC guide, status codes",
		"Code and text of a status reach the client; an unknown method is UNIMPLEMENTED."},
	"server streaming": {"gRPC core concepts, server streaming RPC",
		"Fifty messages of 0 to 49000 bytes arrive in order, and then the end."},
	"client streaming": {"gRPC core concepts, client streaming RPC", "The server sees every byte of fifty messages."},
	"bidirectional": {"gRPC core concepts, bidirectional streaming RPC",
		"A hundred messages come back one by one, unchanged."},
	"deadline": {"gRPC guide, deadlines",
		"A call past its deadline is DEADLINE_EXCEEDED, and ends at the server, too."},
	"cancel":      {"gRPC guide, cancellation", "A cancelled call is CANCELLED, and ends at the server, too."},
	"compression": {"gRPC guide, compression", "Calls compressed with gzip return what they asked for."},
	"far above the ring": {"gRPC guide, flow control",
		"A message of 3 MiB crosses a ring of 256 KiB in both directions."},
	"concurrent calls": {"gRPC core concepts, channels",
		"Sixteen callers share a connection, and each gets its own answers."},
	"unread stream": {"gRPC guide, flow control",
		"A stream that nobody reads holds up no other call, and loses nothing."},
	"abandoned stream": {"gRPC guide, cancellation",
		"A stream given up in the middle ends at the server without another call."},
}

func callCases() []suite {
	var all []suite
	for _, c := range rpctest.Cases {
		all = append(all, suite{
			Case: conform.Case{ID: "call/" + strings.ReplaceAll(c.Name, " ", "-"), Clause: promises[c.Name][0],
				Requirement: promises[c.Name][1]},
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
			s, err := reflectpb.NewServerReflectionClient(e.open(toInterop,
				dialing{}).conn).ServerReflectionInfo(e.soon())
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
