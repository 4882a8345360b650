package bench

import (
	"context"
	"flag"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("rapid.checks", "30") // a check is a whole run of about 20 ms
	idleWindow = 2 * time.Millisecond
	leaktest.Main(m)
}

// ends makes both sides' transports of one stack, which are closed when t is done:
// after whatever t starts with them has ended, so that nothing of theirs is open.
type ends func(t testing.TB) (client, server transports.Transport)

func memEnds(t testing.TB) (transports.Transport, transports.Transport) {
	t.Helper()
	fabric := memdev.NewFabric(memdev.Config{})
	return openMem(t, fabric, "client"), openMem(t, fabric, "server")
}

func openMem(t testing.TB, f *memdev.Fabric, name string) transports.Transport {
	t.Helper()
	dev, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return owned(t, direct.New(dev))
}

// owned closes tr when t is done, and fails t if something is still open there.
func owned[T transports.Transport](t testing.TB, tr T) T {
	t.Helper()
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("close %s: %v", tr.Name(), err)
		}
	})
	return tr
}

func tcpEnds(t testing.TB) (transports.Transport, transports.Transport) {
	t.Helper()
	return owned(t, tcp.New(tcp.Config{})), owned(t, tcp.New(tcp.Config{}))
}

func iwarpEnds(t testing.TB) (transports.Transport, transports.Transport) {
	t.Helper()
	open := func() transports.Transport {
		dev, err := iwarp.Open(iwarp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return owned[transports.Transport](t, direct.New(dev))
	}
	return open(), open()
}

var stacksUnderTest = map[string]ends{"mem": memEnds, "tcp": tcpEnds, "iwarp": iwarpEnds}

// quickPlan ends soon.
func quickPlan(points ...Point) Plan {
	return Plan{Transport: "test", Points: points, Iterations: 300, Depth: 16, RecvDepth: 32, Verify: true, Seed: 1,
		ClientCPU: -1, ServerCPU: -1, Timeout: 20 * time.Second}
}

// serveOn runs a server for the test's life and returns its address.
func serveOn(t testing.TB, s *Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String()
}

// openerOf gives every session the same transport, and keeps it open.
func openerOf(tr transports.Transport) func(string) (transports.Transport, error) {
	return func(string) (transports.Transport, error) { return keepOpen{tr}, nil }
}

type keepOpen struct{ transports.Transport }

func (keepOpen) Close() error { return nil }

// Unwrap is for what only the transport itself has.
func (k keepOpen) Unwrap() transports.Transport { return k.Transport }

// runPoints takes all points of a plan and returns their results.
func runPoints(t testing.TB, e ends, plan Plan) ([]reports.Result, error) {
	t.Helper()
	client, server := e(t)
	addr := serveOn(t, &Server{Open: openerOf(server)})
	c, err := Connect(t.Context(), addr, client, plan)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []reports.Result
	for i := range plan.Points {
		res, err := c.Run(t.Context(), i)
		out = append(out, res)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}
