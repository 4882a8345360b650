package enginetest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/transports/rdma"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/tcp"
)

// Table is every workload that the tests of a package run.
var Table engine.Table

// Main runs the tests of a package on these workloads.
func Main(m *testing.M, table engine.Table) {
	Table = table
	flag.Parse()
	_ = flag.Set("rapid.checks", "30") // where there are any: a check is a whole run of about 20 ms
	drive.IdleWindow = 2 * time.Millisecond
	leaktest.Main(m)
}

// First is the only result of a point.
func First(r []reports.Result, err error) (reports.Result, error) {
	if len(r) == 0 {
		return reports.Result{}, err
	}
	return r[0], err
}

// Alone is a workload whose points need no server.
type Alone func(ctx context.Context, r *engine.Run) ([]reports.Result, error)

// Client calls f.
func (f Alone) Client(ctx context.Context, r *engine.Run) error {
	results, err := f(ctx, r)
	r.Add(results...)
	return err
}

// Server refuses.
func (Alone) Server(ctx context.Context, s *engine.Serve) error {
	return engine.ClientOnly{}.Server(ctx, s)
}

// Ends makes both sides' transports of one stack, which are closed after whatever t starts with them has ended.
type Ends func(t testing.TB) (client, server transports.Stack)

// MemEnds are of a fabric of their own.
func MemEnds(t testing.TB) (transports.Stack, transports.Stack) { return over(t, memDevices) }

// IwarpEnds are joined by the kernel's TCP.
func IwarpEnds(t testing.TB) (transports.Stack, transports.Stack) { return over(t, iwarpDevices) }

func over(t testing.TB, devices func(testing.TB) (client, server rdma.Device)) (transports.Stack, transports.Stack) {
	t.Helper()
	a, b := devices(t)
	return Owned(t, direct.New(a)), Owned(t, direct.New(b))
}

func OpenMem(t testing.TB, f *memdev.Fabric, name string) transports.Transport {
	t.Helper()
	return Owned(t, direct.New(must(f.Open(name))(t)))
}

// Owned closes tr when t is done, and fails t if something is still open there.
func Owned[T transports.Stack](t testing.TB, tr T) T {
	t.Helper()
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Errorf("close %s: %v", tr.Name(), err)
		}
	})
	return tr
}

func TcpEnds(t testing.TB) (transports.Stack, transports.Stack) {
	t.Helper()
	return Owned(t, tcp.New(tcp.Config{})), Owned(t, tcp.New(tcp.Config{}))
}

var StacksUnderTest = map[string]Ends{"mem": MemEnds, "tcp": TcpEnds, "iwarp": IwarpEnds}

// QuickPlan ends soon.
func QuickPlan(points ...engine.Point) engine.Plan {
	return engine.Plan{Workloads: Table, Transport: "test", Points: points, Iterations: 300, Depth: 16, RecvDepth: 32,
		Verify: true, Seed: 1,
		ClientCPU: -1, ServerCPU: -1, Timeout: 20 * time.Second}
}

// ServeOn runs a server for the test's life and returns its address.
func ServeOn(t testing.TB, s *engine.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx, l); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return l.Addr().String()
}

// OpenerOf gives every session the same transport, and keeps it open.
func OpenerOf(s transports.Stack) func(string) (transports.Stack, error) {
	return func(string) (transports.Stack, error) {
		if calls, err := transports.Calls(s); err == nil {
			return openCalls{calls}, nil
		}
		tr, err := transports.Sessions(s)
		return openSessions{tr}, err
	}
}

// Stacks that a server does not close.
type (
	openSessions struct{ transports.Transport }
	openCalls    struct{ transports.CallTransport }
)

func (openSessions) Close() error { return nil }
func (openCalls) Close() error    { return nil }

func sessions(t testing.TB, s transports.Stack) transports.Transport {
	t.Helper()
	tr, err := transports.Sessions(s)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// SessionEnds are both ends as makers of sessions.
func SessionEnds(t testing.TB, e Ends) (client, server transports.Transport) {
	t.Helper()
	c, s := e(t)
	return sessions(t, c), sessions(t, s)
}

// Client is connected to a server for the test's life, on stacks of e.
func Client(t testing.TB, e Ends, plan engine.Plan) (*engine.Client, error) {
	t.Helper()
	client, server := e(t)
	addr := ServeOn(t, &engine.Server{Workloads: Table, Open: OpenerOf(server)})
	c, err := engine.Connect(t.Context(), addr, client, plan)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// RunPoints takes all points of a plan and returns their results.
func RunPoints(t testing.TB, e Ends, plan engine.Plan) (out []reports.Result, err error) {
	t.Helper()
	c, err := Client(t, e, plan)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i := range plan.Points {
		res, err := First(c.Run(t.Context(), i))
		out = append(out, res)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// Pair builds both sides of the first point of a plan in this process.
func Pair(t testing.TB, e Ends, plan engine.Plan, shape func(*engine.Setup) (*engine.Shape, error),
	of [2]engine.NewSide) (client, server *engine.Group) {
	t.Helper()
	a, b := SessionEnds(t, e)
	sh := ShapeOf(t, plan, a.Caps(), b.Caps(), shape)
	l, err := b.Listen(t.Context(), "127.0.0.1:0", sh.Config)
	if err != nil {
		t.Fatal(err)
	}
	var near, far []transports.Session
	for i := range sh.QPs {
		accepted := make(chan transports.Session, 1)
		go func() {
			s, _, err := l.Accept(t.Context())
			if err != nil {
				t.Errorf("accept: %v", err)
			}
			accepted <- s
		}()
		s, err := a.Dial(t.Context(), l.Addr(), []byte{byte(i)}, sh.Config)
		if err != nil {
			t.Fatal(err)
		}
		near, far = append(near, s), append(far, <-accepted)
	}
	l.Close()
	if client, err = engine.NewGroup(sh, engine.SideClient, near, -1, a.Caps(), of[0]); err != nil {
		t.Fatal(err)
	}
	if server, err = engine.NewGroup(sh, engine.SideServer, far, -1, b.Caps(), of[1]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

// ShapeOf is the shape of the first point of a plan on two stacks.
func ShapeOf(t testing.TB, plan engine.Plan, client, server transports.Caps, shape func(*engine.Setup) (*engine.Shape,
	error)) *engine.Shape {
	t.Helper()
	p := plan.WithDefaults()
	sh, err := engine.NewSetup(&p, p.Points[0], client, server).Shape(shape)
	if err != nil {
		t.Fatal(err)
	}
	return sh
}

// Refusal is why a workload does not take the first point of a plan, nil where it does.
func Refusal(plan engine.Plan, caps transports.Caps, shape func(*engine.Setup) (*engine.Shape, error)) error {
	p := plan.WithDefaults()
	if err := p.Validate(); err != nil {
		return err
	}
	_, err := shape(engine.NewSetup(&p, p.Points[0], caps, caps))
	return err
}

// Once runs one phase of a pair.
func Once(t testing.TB, client, server *engine.Group, gen int, lim engine.Limits) *engine.Outcome {
	t.Helper()
	for _, c := range []*engine.Group{server, client} {
		if err := c.Side.Prepare(gen); err != nil {
			t.Fatal(err)
		}
	}
	target := server.Start(engine.Limits{Ops: lim.Ops}, false)
	out := client.Start(lim, !client.Sh.Counted).Wait()
	target.Halt(engine.StopSoon)
	if e := target.Wait().Err; out.Err != nil || e != nil {
		t.Fatalf("client %v, server %v", out.Err, e)
	}
	return out
}

// PhaseAllocations is what a phase may allocate, however long it is: timers, threads, and two lists of threads.
const PhaseAllocations = 200

// MemServer runs a server on mem and returns its address and the client's end.
func MemServer(t testing.TB, s *engine.Server) (string, transports.Stack) {
	t.Helper()
	client, server := MemEnds(t)
	s.Open = OpenerOf(server)
	return ServeOn(t, s), client
}

// Works fails t when a client cannot run a point now.
func Works(t testing.TB, addr string, tr transports.Stack) {
	t.Helper()
	plan := QuickPlan(engine.Point{Workload: "latency", Op: "send", Size: 64})
	plan.Iterations = 10
	if _, err := Try(t.Context(), addr, tr, plan); err != nil {
		t.Fatalf("a good client: %v", err)
	}
}

// Try connects to a server and runs the first point of a plan.
func Try(ctx context.Context, addr string, tr transports.Stack, plan engine.Plan) (reports.Result, error) {
	c, err := engine.Connect(ctx, addr, tr, plan)
	if err != nil {
		return reports.Result{}, err
	}
	defer c.Close()
	return First(c.Run(ctx, 0))
}

// CutShort runs the first point of plan until it is interrupted, once it has measured something.
func CutShort(t testing.TB, addr string, tr transports.Stack, plan engine.Plan) (r reports.Result, err error) {
	t.Helper()
	for after := 100 * time.Millisecond; after < 20*time.Second && r.Operations == 0; after *= 5 {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		r, err = Try(ctx, addr, tr, plan)
		cancel()
	}
	return r, err
}

func carrierEnds(cfg carrier.Config, open func(t testing.TB) (client, server rdma.Device)) Ends {
	return func(t testing.TB) (transports.Stack, transports.Stack) {
		t.Helper()
		var devs [2]rdma.Device
		if open != nil {
			devs[0], devs[1] = open(t)
		}
		var out [2]transports.Stack
		for i := range out {
			c, err := carrier.New(cfg, devs[i])
			if err != nil {
				t.Fatal(err)
			}
			out[i] = Owned(t, c)
		}
		return out[0], out[1]
	}
}

func must[D rdma.Device](d D, err error) func(testing.TB) rdma.Device {
	return func(t testing.TB) rdma.Device {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func iwarpDevices(t testing.TB) (rdma.Device, rdma.Device) {
	t.Helper()
	return must(iwarp.Open(iwarp.Config{}))(t), must(iwarp.Open(iwarp.Config{}))(t)
}

func memDevices(t testing.TB) (rdma.Device, rdma.Device) {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	return must(f.Open("client"))(t), must(f.Open("server"))(t)
}

func CarriersUnderTest() map[string]Ends {
	of := func(form carrier.Form, mode bpev.Mode) carrier.Config {
		c := carrier.Config{Form: form}
		c.Net.Polling.Mode = mode
		return c
	}
	return map[string]Ends{
		"tcp":                carrierEnds(carrier.Config{Form: carrier.TCP}, nil),
		"tcp best":           carrierEnds(carrier.Config{Form: carrier.TCP, Options: carrier.Options{Best: true}}, nil),
		"unix":               carrierEnds(carrier.Config{Form: carrier.Unix}, nil),
		"bufconn":            carrierEnds(carrier.Config{Form: carrier.BufConn}, nil),
		"dropin iwarp":       carrierEnds(of(carrier.DropIn, bpev.BPEV), iwarpDevices),
		"fused iwarp":        carrierEnds(of(carrier.Fused, bpev.BPEV), iwarpDevices),
		"fused event iwarp":  carrierEnds(of(carrier.Fused, bpev.Event), iwarpDevices),
		"fused mem":          carrierEnds(of(carrier.Fused, bpev.BPEV), memDevices),
		"dropin event iwarp": carrierEnds(of(carrier.DropIn, bpev.Event), iwarpDevices),
	}
}

func RpcPoint(call string, request, response int) engine.Point {
	return engine.Point{Workload: "rpc", Op: "call", Call: call, Size: request, Response: response,
		Words: fmt.Sprintf("rpc %s %d B", call, request)}
}
