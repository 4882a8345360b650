package connect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

func readPoint(size, atOnce int) engine.Point {
	return engine.Point{Workload: Name, Op: "read", Size: size, QPs: atOnce}
}

func callPoint(atOnce int) engine.Point {
	return engine.Point{Workload: Name, Op: "call", Size: 64, QPs: atOnce, Call: engine.CallUnary, Response: 64}
}

// Every connection is counted, timed in every stage, and its first bytes are verified, one by one and at once.
func TestConnectionsAreSetUpAndTimed(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) { setUpAndTimed(t, e, readPoint(64, 0), readPoint(1, 3)) })
	}
	for _, name := range []string{"tcp", "unix", "dropin iwarp", "fused iwarp"} {
		t.Run("calls, "+name, func(t *testing.T) {
			setUpAndTimed(t, enginetest.CarriersUnderTest()[name], callPoint(1), callPoint(3))
		})
	}
}

func setUpAndTimed(t *testing.T, e enginetest.Ends, points ...engine.Point) {
	plan := enginetest.QuickPlan(points...)
	plan.Iterations, plan.WarmupIterations = 15, 2
	for i, r := range workloadtest.Results(t, e, plan) {
		pt := plan.Points[i]
		n, c := max(pt.QPs, 1), Of(&r)
		if c == nil || c.AtOnce != n || r.QPs != n || r.Threads != n || r.Operations != int64(15*n) || !r.Verified ||
			r.RoundTrip != "full" {
			t.Fatalf("%s: %+v, connect %+v", pt, r, c)
		}
		stages := map[string]*reports.Latency{"connect": &c.Connect, "first": &c.FirstRoundTrip,
			"disconnect": &c.Disconnect, "full": &c.Full, "ready": r.Latency}
		if pt.Call == "" {
			stages["create"] = &c.Create
		} else if s, _ := r.Parameters["server"].(map[string]any); s["operations"] != r.Operations {
			t.Errorf("%s: server %v, want %d operations", pt, s, r.Operations)
		}
		for stage, l := range stages {
			if l.Count != r.Operations || l.Max <= 0 {
				t.Errorf("%s: %s has %d samples up to %v", pt, stage, l.Count, l.Max)
			}
		}
		parts := c.Create.Mean + c.Connect.Mean + c.FirstRoundTrip.Mean
		if d := r.Latency.Mean - parts; d < -1 || d > 1 {
			t.Errorf("%s: until the first answer %v, want the sum of its stages %v", pt, r.Latency.Mean, parts)
		}
		if d := c.Full.Mean - parts - c.Disconnect.Mean; d < -1 || d > 1 {
			t.Errorf("%s: all of it %v, want the sum of the stages", pt, c.Full.Mean)
		}
		if r.Throughput.OperationsPerSecond <= 0 || r.LatencyCorrected != nil {
			t.Errorf("%s: throughput %+v", pt, r.Throughput)
		}
	}
}

func TestConnectionsForATime(t *testing.T) {
	for pt, e := range map[engine.Point]enginetest.Ends{readPoint(64, 2): enginetest.MemEnds,
		callPoint(2): enginetest.CarriersUnderTest()["fused mem"]} {
		plan := enginetest.QuickPlan(pt)
		plan.Iterations, plan.Duration, plan.Interval = 0, 60*time.Millisecond, 20*time.Millisecond
		r := workloadtest.Results(t, e, plan)[0]
		var sum int64
		for _, p := range r.Series.Points {
			sum += p.Operations
		}
		if r.DurationNs < int64(plan.Duration) || r.Operations == 0 || sum != r.Operations {
			t.Errorf("%s: %d connections in %v, %d in the intervals", pt, r.Operations, time.Duration(r.DurationNs), sum)
		}
	}
}

// A changed byte of the first answer is a corruption, and an interrupt ends in order.
func TestConnectionsThatGoWrong(t *testing.T) {
	flip := &enginetest.Fault{}
	flip.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		if n > 0 {
			s.Local()[64] ^= 1 // the slot behind the source
		}
		return n, err
	}
	plan := enginetest.QuickPlan(readPoint(64, 0))
	plan.Iterations = 5
	workloadtest.Corrupts(t, "a changed byte", enginetest.WithFault(flip), plan, "")
	client, server := enginetest.SessionEnds(t, enginetest.MemEnds)
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	plan.Iterations = 1 << 40
	if r, err := enginetest.CutShort(t, addr, client, plan); !errors.Is(err, engine.ErrInterrupted) ||
		Of(&r) == nil || r.Operations == 0 {
		t.Errorf("%v, %d connections, want an interrupt with some", err, r.Operations)
	}
	enginetest.Works(t, addr, client)
}

// A server takes no more connections than the shape allows, and none of an unknown peer.
func TestServerBoundsConnections(t *testing.T) {
	client, server := enginetest.SessionEnds(t, enginetest.TcpEnds)
	sh := enginetest.ShapeOf(t, enginetest.QuickPlan(readPoint(64, 0)), client.Caps(), server.Caps(), shape)
	l, err := server.Listen(t.Context(), "127.0.0.1:0", sh.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token := []byte("12345678")
	h := &hosts{listener: l, events: true, token: token, tenants: make([]context.CancelFunc, 1),
		places: make(chan struct{}, 2)}
	r := h.start()
	for _, hello := range []string{"12345678\x00\x00\x00\x00", "wrongkey\x00\x00\x00\x00", "12345678\x00\x00\x00\x01",
		"short", "12345678\x00\x00\x00\x00", "12345678\x00\x00\x00\x00"} {
		s, err := client.Dial(t.Context(), l.Addr(), []byte(hello), sh.Config)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); len(h.places) > 1 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := len(h.places); n > 1 {
		t.Errorf("%d connections are held, want the last of one thread and the place of the next", n)
	}
	r.Halt(engine.StopSoon)
	if out := r.Wait(); out.Ops != 3 || out.Err != nil {
		t.Errorf("%d connections taken, %v, want 3", out.Ops, out.Err)
	}
	workloadtest.Refused(t, client.Caps(), shape, readPoint(64, 0), map[string]func(p *engine.Plan){
		"polling":   func(p *engine.Plan) { p.Polling = engine.PollingEvent },
		"operation": func(p *engine.Plan) { p.Points[0].Op = "send" },
		"at once":   func(p *engine.Plan) { p.Points[0].QPs = engine.MaxThreads + 1 },
	})
}

// A server that accepts and does not answer costs the timeout.
func TestConnectionOfCallsEndsInTime(t *testing.T) {
	silent := enginetest.CallFault{Serve: func(_ int64, s *transports.Served, _ func(*transports.Served) error) error {
		<-s.Ctx.Done()
		return s.Ctx.Err()
	}}
	plan := enginetest.QuickPlan(callPoint(1))
	plan.Timeout = 500 * time.Millisecond
	if _, err := enginetest.RunPoints(t, silent.Ends(enginetest.CarriersUnderTest()["tcp"]), plan); err == nil ||
		!strings.Contains(err.Error(), "DeadlineExceeded") {
		t.Errorf("%v, want the first call to miss its deadline", err)
	}
}

type refuses struct{ transports.CallTransport }

func (refuses) Caps() transports.Caps { return transports.Caps{} }

func (refuses) DialCalls(context.Context, string, transports.CallConfig) (transports.CallConn, error) {
	return nil, errors.New("connection lost")
}

func TestAServerThatGoesAwayIsAnErrorOfThePeer(t *testing.T) {
	s := &setups{m: &engine.Measurement{Sh: &engine.Shape{Timeout: time.Second}}}
	c := &calls{tr: refuses{}}
	if _, err := c.setUp(t.Context(), s, new(engine.Phase), 0, 0); reports.Code(err) != reports.ExitPeer {
		t.Errorf("%v, exit code %d", err, reports.Code(err))
	}
}
