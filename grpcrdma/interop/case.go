package interop

import (
	"slices"
	"strings"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
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
