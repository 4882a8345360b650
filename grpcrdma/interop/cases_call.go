package interop

import (
	"strings"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

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
