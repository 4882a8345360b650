package rpc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/reports"
	callskind "github.com/rdmaperf/rdmaperf/reports/kinds/calls"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestRPCOnEveryCarrier(t *testing.T) {
	for name, e := range enginetest.CarriersUnderTest() {
		t.Run(name, func(t *testing.T) {
			several := enginetest.RpcPoint(engine.CallUnary, 100, 9)
			several.QPs, several.Outstanding = 3, 4
			points := []engine.Point{several, enginetest.RpcPoint(engine.CallStream, 9, 300_000), enginetest.RpcPoint(engine.CallOneway, 70_000, 8)}
			if name == "unix" || name == "fused iwarp" {
				points = append(points, enginetest.RpcPoint(engine.CallUnary, 1, 1), enginetest.RpcPoint(engine.CallStream, 64, 64), enginetest.RpcPoint(engine.CallOneway, 1, 8))
			}
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 41, 10, 1
			results, err := enginetest.RunPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				pt := points[i]
				want := int64(41 * max(pt.QPs, 1))
				server, _ := r.Parameters["server"].(map[string]any)
				switch {
				case r.Operations != want || server["operations"] != want:
					t.Errorf("%s: %d operations, %v at the server, want %d", pt, r.Operations, server["operations"], want)
				case !r.Verified || r.Errors != 0:
					t.Errorf("%s: verified %v, %d errors", pt, r.Verified, r.Errors)
				case callskind.Of(&r) == nil || callskind.Of(&r).Call != pt.Call || r.Depth != max(pt.Outstanding, 1) || r.QPs != max(pt.QPs, 1):
					t.Errorf("%s: %+v, depth %d, %d connections", pt, callskind.Of(&r), r.Depth, r.QPs)
				case (r.Latency == nil) != (pt.Call == engine.CallOneway):
					t.Errorf("%s: latency %v", pt, r.Latency)
				case r.Latency != nil && (r.Latency.Count != want || r.RoundTrip != reports.RoundTripFull):
					t.Errorf("%s: %d samples of a %s round trip", pt, r.Latency.Count, r.RoundTrip)
				case r.Throughput == nil || r.Throughput.OperationsPerSecond <= 0:
					t.Errorf("%s: throughput %+v", pt, r.Throughput)
				case callskind.Of(&r).Idle == nil || callskind.Of(&r).Resident == nil || callskind.Of(&r).Resident.ServerBytes <= 0:
					t.Errorf("%s: idle %+v, resident %+v", pt, callskind.Of(&r).Idle, callskind.Of(&r).Resident)
				}
			}
		})
	}
}

func TestRPCOpenLoopCountsFromIntendedStarts(t *testing.T) {
	pt := enginetest.RpcPoint(engine.CallUnary, 64, 64)
	pt.Rate, pt.QPs = 2000, 4
	plan := enginetest.QuickPlan(pt)
	plan.Iterations, plan.Duration, plan.Interval, plan.Depth = 0, 300*time.Millisecond, 100*time.Millisecond, 1
	results, err := enginetest.RunPoints(t, enginetest.CarriersUnderTest()["fused iwarp"], plan)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.LatencyService == nil || r.LatencyService.Count != r.Operations || r.Latency.Count != r.Operations+r.Latency.Unfinished || r.OpenLoop == nil || r.OpenLoop.Due != r.Latency.Count || r.Latency.Mean < r.LatencyService.Mean {
		t.Errorf("latency %+v, service %+v", r.Latency, r.LatencyService)
	}
	sent := float64(r.Operations) + float64(r.Parameters["unsent_operations"].(int64))
	if sent < 590 || sent > 610 {
		t.Errorf("%v calls were due in 0.3 s at 2000 a second", sent)
	}
	if r.Series == nil || len(r.Series.Points) != 3 {
		t.Errorf("series %+v", r.Series)
	}
}

// bent replaces the workload's row for one test.
func bent(t *testing.T, change func(w *engine.CallWork)) {
	t.Helper()
	row := enginetest.Table.Find(Name)
	before := row.Calls
	w := *before
	change(&w)
	row.Calls = &w
	t.Cleanup(func() { row.Calls = before })
}

// flipper damages the last byte of the 20th request.
type flipper struct {
	*rpcCaller
	n int
}

func (f *flipper) Call() error {
	if f.n++; f.n == 20 {
		f.c.Request = append([]byte(nil), f.c.Request...)
		f.c.Request[len(f.c.Request)-1] ^= 0x40
	}
	return f.rpcCaller.Call()
}

// liar answers with a damaged byte from the 20th call on.
type liar struct {
	*echo
	n int
}

func (l *liar) ServeCall(s *transports.Served) error {
	err := l.echo.ServeCall(s)
	if l.n++; err == nil && l.n > 20 {
		s.Response = append([]byte(nil), s.Response...)
		s.Response[7] ^= 1
	}
	return err
}

func TestRPCFindsChangedBytes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(w *engine.CallWork)
	}{
		{"request", "request: byte 63 is", func(w *engine.CallWork) {
			callers := w.Callers
			w.Callers = func(sh *engine.Shape) func(transports.CallConn, int) (engine.Caller, error) {
				one := callers(sh)
				return func(conn transports.CallConn, index int) (engine.Caller, error) {
					c, err := one(conn, index)
					return &flipper{rpcCaller: c.(*rpcCaller)}, err
				}
			}
		}},
		{"response", "response: byte 7 is", func(w *engine.CallWork) {
			w.Serve = func(sh *engine.Shape, fail func(error)) (engine.CallService, error) {
				l := &liar{echo: &echo{sh: sh, fail: fail}}
				return l, l.Begin(engine.GenWarmup)
			}
		}},
	} {
		for _, stack := range []string{"unix", "fused iwarp"} {
			t.Run(c.name+" "+stack, func(t *testing.T) {
				bent(t, c.change)
				plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallUnary, 64, 64))
				plan.Depth = 1
				_, err := enginetest.RunPoints(t, enginetest.CarriersUnderTest()[stack], plan)
				if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), c.want) {
					t.Errorf("code %d: %v, want %d and %q", reports.Code(err), err, reports.ExitCorruption, c.want)
				}
			})
		}
	}
}

// sleeper answers nothing from the 20th call on.
type sleeper struct {
	*echo
	n int
}

func (s *sleeper) ServeCall(r *transports.Served) error {
	if s.n++; s.n > 20 {
		<-r.Ctx.Done()
		return r.Ctx.Err()
	}
	return s.echo.ServeCall(r)
}

func TestRPCEndsWithAServerThatAnswersNothing(t *testing.T) {
	bent(t, func(w *engine.CallWork) {
		w.Serve = func(sh *engine.Shape, fail func(error)) (engine.CallService, error) {
			s := &sleeper{echo: &echo{sh: sh, fail: fail}}
			return s, s.Begin(engine.GenWarmup)
		}
	})
	for _, stack := range []string{"tcp", "fused iwarp"} {
		plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallUnary, 64, 64))
		plan.Depth, plan.Timeout = 1, time.Second
		_, err := enginetest.RunPoints(t, enginetest.CarriersUnderTest()[stack], plan)
		if reports.Code(err) != reports.ExitPeer || !errors.Is(err, engine.ErrStalled) {
			t.Errorf("%s: code %d: %v", stack, reports.Code(err), err)
		}
	}
}

func TestRPCInterruptKeepsWhatWasMeasured(t *testing.T) {
	client, server := enginetest.CarriersUnderTest()["fused iwarp"](t)
	plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallStream, 64, 64))
	plan.Iterations, plan.Duration, plan.Depth = 0, time.Minute, 2
	res, err := enginetest.CutShort(t, enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)}), client, plan)
	if !errors.Is(err, engine.ErrInterrupted) || res.Operations == 0 || res.Latency == nil || res.CPU == nil || res.CPU.ServerSeconds == 0 {
		t.Errorf("%v; %d operations, CPU %+v", err, res.Operations, res.CPU)
	}
}
