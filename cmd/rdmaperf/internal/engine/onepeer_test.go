package engine_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
)

// panics is a workload whose server panics.
type panics struct{ engine.Runner }

func (panics) Server(context.Context, *engine.Serve) error { panic("injected") }

// bomb is a connection whose reads panic.
type bomb struct{ net.Conn }

func (bomb) Read([]byte) (int, error) { panic("injected") }

// A client whose point makes the server panic gets an error, one whose octets do is cut off, and the next client is
// served.
func TestAPanicOfTheServerEndsOneClientAlone(t *testing.T) {
	s := &engine.Server{Workloads: engine.Table{}}
	for name, e := range enginetest.Table {
		s.Workloads[name] = e
	}
	e := s.Workloads[latency.Name]
	e.Runner = panics{e.Runner}
	s.Workloads[latency.Name] = e
	addr, tr := enginetest.MemServer(t, s)
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	for range 2 {
		_, err := enginetest.Try(t.Context(), addr, tr, plan)
		if reports.Code(err) != reports.ExitFailed ||
			!strings.Contains(err.Error(), "internal error: injected, at onepeer_test.go:") {
			t.Errorf("%v, want the server's panic", err)
		}
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.ServeConn(t.Context(), bomb{far}) }()
		near.SetDeadline(time.Now().Add(20 * time.Second))
		near.Read(make([]byte, 1000)) // a refusal or the end
		near.Close()
		<-done
	}
}
