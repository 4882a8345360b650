package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	connectresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Every connection is counted, timed in every stage from the start, and its first
// bytes are verified; one after the other and several at once.
func TestConnectionsAreSetUpAndTimed(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "read", Size: 64},
				engine.Point{Workload: Name, Op: "read", Size: 1, QPs: 3})
			plan.Iterations, plan.WarmupIterations = 20, 2
			results, err := enginetest.RunPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				n := max(plan.Points[i].QPs, 1)
				c := connectresults.Of(&r)
				if c == nil || c.AtOnce != n || r.QPs != n || r.Threads != n || r.Operations != int64(20*n) ||
					!r.Verified || r.RoundTrip != "full" {
					t.Fatalf("%s: %+v, connect %+v", plan.Points[i], r, c)
				}
				for stage, l := range map[string]*reports.Latency{"create": &c.Create, "connect": &c.Connect,
					"first": &c.FirstRoundTrip, "disconnect": &c.Disconnect, "full": &c.Full, "ready": r.Latency} {
					if l.Count != r.Operations || l.Max <= 0 {
						t.Errorf("%s: %s has %d samples up to %v", plan.Points[i], stage, l.Count, l.Max)
					}
				}
				parts := c.Create.Mean + c.Connect.Mean + c.FirstRoundTrip.Mean
				if d := r.Latency.Mean - parts; d < -1 || d > 1 {
					t.Errorf("%s: until the first answer %v, want the sum of its stages %v", plan.Points[i],
						r.Latency.Mean, parts)
				}
				if d := c.Full.Mean - parts - c.Disconnect.Mean; d < -1 || d > 1 {
					t.Errorf("%s: all of it %v, want the sum of the stages", plan.Points[i], c.Full.Mean)
				}
				if r.Throughput.OperationsPerSecond <= 0 || r.LatencyCorrected != nil {
					t.Errorf("%s: throughput %+v", plan.Points[i], r.Throughput)
				}
			}
		})
	}
}

// A duration bounds the phase, and an interval divides it.
func TestConnectionsForATime(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "read", Size: 64, QPs: 2})
	plan.Iterations, plan.Duration, plan.Interval = 0, 60*time.Millisecond, 20*time.Millisecond
	results, err := enginetest.RunPoints(t, enginetest.MemEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	var sum int64
	for _, p := range r.Series.Points {
		sum += p.Operations
	}
	if r.DurationNs < int64(plan.Duration) || r.Operations == 0 || sum != r.Operations {
		t.Errorf("%d connections in %v, %d in the intervals", r.Operations, time.Duration(r.DurationNs), sum)
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
	plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "read", Size: 64})
	plan.Iterations = 5
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(flip),
		plan); reports.Code(err) != reports.ExitCorruption {
		t.Errorf("%v, want a corruption", err)
	}
	client, server := enginetest.SessionEnds(t, enginetest.MemEnds)
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	plan.Iterations = 1 << 40
	if r, err := enginetest.CutShort(t, addr, client, plan); !errors.Is(err, engine.ErrInterrupted) ||
		connectresults.Of(&r) == nil || r.Operations == 0 {
		t.Errorf("%v, %d connections, want an interrupt with some", err, r.Operations)
	}
	enginetest.Works(t, addr, client)
}

// A server takes no more connections than the shape allows, and none of an unknown peer.
func TestServerBoundsConnections(t *testing.T) {
	client, server := enginetest.SessionEnds(t, enginetest.TcpEnds)
	sh := enginetest.ShapeOf(t, enginetest.QuickPlan(engine.Point{Workload: Name, Op: "read", Size: 64}), client.Caps(),
		server.Caps(), shape)
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
	for what, bend := range map[string]func(p *engine.Plan){
		"polling":   func(p *engine.Plan) { p.Polling = engine.PollingEvent },
		"operation": func(p *engine.Plan) { p.Points[0].Op = "send" },
		"at once":   func(p *engine.Plan) { p.Points[0].QPs = engine.MaxThreads + 1 },
	} {
		plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "read", Size: 64})
		bend(&plan)
		if err := enginetest.Refusal(plan, client.Caps(), shape); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
}
