package connect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	connectresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/connect/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func callPoint(atOnce int) engine.Point {
	return engine.Point{Workload: Name, Op: "call", Size: 64, QPs: atOnce, Call: engine.CallUnary, Response: 64}
}

// Every connection of calls is counted and timed from dialling to its first answer, which is
// compared.
func TestConnectionsOfCallsAreSetUpAndTimed(t *testing.T) {
	for _, name := range []string{"tcp", "unix", "dropin iwarp", "fused iwarp"} {
		t.Run(name, func(t *testing.T) {
			for _, atOnce := range []int{1, 3} {
				plan := enginetest.QuickPlan(callPoint(atOnce))
				plan.Iterations, plan.WarmupIterations = 12, 2
				r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()[name], plan))
				if err != nil {
					t.Fatal(err)
				}
				c := connectresults.Of(&r)
				server, _ := r.Parameters["server"].(map[string]any)
				if c == nil || c.AtOnce != atOnce || r.QPs != atOnce || r.Operations != int64(12*atOnce) ||
					!r.Verified || r.RoundTrip != "full" || server["operations"] != r.Operations {
					t.Fatalf("%+v, connect %+v, server %v", r, c, server)
				}
				for stage, l := range map[string]*reports.Latency{"connect": &c.Connect, "first": &c.FirstRoundTrip,
					"disconnect": &c.Disconnect, "full": &c.Full, "ready": r.Latency} {
					if l.Count != r.Operations || l.Max <= 0 {
						t.Errorf("%s has %d samples up to %v", stage, l.Count, l.Max)
					}
				}
				if d := r.Latency.Mean - c.Connect.Mean - c.FirstRoundTrip.Mean; d < -1 || d > 1 {
					t.Errorf("until the first answer %v, want the sum of its stages %v", r.Latency.Mean,
						c.Connect.Mean+c.FirstRoundTrip.Mean)
				}
			}
		})
	}
}

// A duration bounds the phase.
func TestConnectionsOfCallsForATime(t *testing.T) {
	plan := enginetest.QuickPlan(callPoint(2))
	plan.Iterations, plan.Duration = 0, 60*time.Millisecond
	r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()["fused mem"], plan))
	if err != nil || r.Operations == 0 || r.DurationNs < int64(plan.Duration) {
		t.Errorf("%v: %d connections in %v", err, r.Operations, time.Duration(r.DurationNs))
	}
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

// refuses is a stack whose peer takes no connection of calls.
type refuses struct{ transports.CallTransport }

func (refuses) Caps() transports.Caps { return transports.Caps{} }

func (refuses) DialCalls(context.Context, string, transports.CallConfig) (transports.CallConn, error) {
	return nil, errors.New("connection lost")
}

// A server that goes away between two connections is an error of the peer.
func TestAServerThatGoesAwayIsAnErrorOfThePeer(t *testing.T) {
	sh := &engine.Shape{}
	sh.Timeout = time.Second
	c := &calls{setups: &setups{m: &engine.Measurement{Sh: sh}}, tr: refuses{}}
	if _, err := c.setUp(t.Context(), new(engine.Phase), 0, 0); reports.Code(err) != reports.ExitPeer {
		t.Errorf("%v, exit code %d", err, reports.Code(err))
	}
}
