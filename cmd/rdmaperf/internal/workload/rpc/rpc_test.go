package rpc

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload))) }

func TestRPCOnEveryCarrier(t *testing.T) {
	for name, e := range enginetest.CarriersUnderTest() {
		t.Run(name, func(t *testing.T) {
			several := enginetest.RpcPoint(engine.CallUnary, 100, 9)
			several.QPs, several.Outstanding = 3, 4
			points := []engine.Point{several, enginetest.RpcPoint(engine.CallStream, 9, 300_000),
				enginetest.RpcPoint(engine.CallOneway, 70_000, 8)}
			if name == "unix" || name == "fused iwarp" {
				points = append(points, enginetest.RpcPoint(engine.CallUnary, 1, 1),
					enginetest.RpcPoint(engine.CallStream, 64, 64), enginetest.RpcPoint(engine.CallOneway, 1, 8))
			}
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 41, 10, 1
			for i, r := range workloadtest.Results(t, e, plan) {
				pt, d := points[i], callsresults.Of(&r)
				want := int64(41 * max(pt.QPs, 1))
				server, _ := r.Parameters["server"].(map[string]any)
				switch {
				case r.Operations != want || server["operations"] != want:
					t.Errorf("%s: %d operations, %v at the server, want %d", pt, r.Operations,
						server["operations"], want)
				case !r.Verified || r.Errors != 0:
					t.Errorf("%s: verified %v, %d errors", pt, r.Verified, r.Errors)
				case d == nil || d.Call != pt.Call || r.Depth != max(pt.Outstanding, 1) || r.QPs != max(pt.QPs, 1):
					t.Errorf("%s: %+v, depth %d, %d connections", pt, d, r.Depth, r.QPs)
				case (r.Latency == nil) != (pt.Call == engine.CallOneway):
					t.Errorf("%s: latency %v", pt, r.Latency)
				case r.Latency != nil && (r.Latency.Count != want || r.RoundTrip != reports.RoundTripFull):
					t.Errorf("%s: %d samples of a %s round trip", pt, r.Latency.Count, r.RoundTrip)
				case r.Throughput == nil || r.Throughput.OperationsPerSecond <= 0:
					t.Errorf("%s: throughput %+v", pt, r.Throughput)
				case d.Idle == nil || d.Resident == nil || d.Resident.ServerBytes <= 0:
					t.Errorf("%s: idle %+v, resident %+v", pt, d.Idle, d.Resident)
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
	r := workloadtest.Results(t, enginetest.CarriersUnderTest()["fused iwarp"], plan)[0]
	if r.LatencyService == nil || r.LatencyService.Count != r.Operations ||
		r.Latency.Count != r.Operations+r.Latency.Unfinished || r.OpenLoop == nil ||
		r.OpenLoop.Due != r.Latency.Count || r.Latency.Mean < r.LatencyService.Mean {
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

func TestRPCFindsChangedBytes(t *testing.T) {
	for _, c := range []struct {
		want  string
		fault enginetest.CallFault
	}{
		{"request: byte 63 is", enginetest.CallFault{Call: func(n int64, c *transports.Call) {
			if n == 20 {
				c.Request = enginetest.Flipped(c.Request, -1, 0x40)
			}
		}}},
		{"response: byte 7 is", enginetest.CallFault{Serve: func(n int64, s *transports.Served,
			answer func(*transports.Served) error) error {
			err := answer(s)
			if n > 20 && err == nil {
				s.Response = enginetest.Flipped(s.Response, 7, 1)
			}
			return err
		}}},
	} {
		for _, stack := range []string{"unix", "fused iwarp"} {
			plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallUnary, 64, 64))
			plan.Depth = 1
			workloadtest.Corrupts(t, stack, c.fault.Ends(enginetest.CarriersUnderTest()[stack]), plan, c.want)
		}
	}
}

func TestRPCEndsWithAServerThatAnswersNothing(t *testing.T) {
	fault := enginetest.CallFault{Serve: func(n int64, s *transports.Served,
		answer func(*transports.Served) error) error {
		if n > 20 {
			<-s.Ctx.Done()
			return s.Ctx.Err()
		}
		return answer(s)
	}}
	for _, stack := range []string{"tcp", "fused iwarp"} {
		plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallUnary, 64, 64))
		plan.Depth, plan.Timeout = 1, time.Second
		_, err := enginetest.RunPoints(t, fault.Ends(enginetest.CarriersUnderTest()[stack]), plan)
		if reports.Code(err) != reports.ExitPeer || !errors.Is(err, engine.ErrStalled) {
			t.Errorf("%s: code %d: %v", stack, reports.Code(err), err)
		}
	}
}

func TestRPCInterruptKeepsWhatWasMeasured(t *testing.T) {
	client, server := enginetest.CarriersUnderTest()["fused iwarp"](t)
	plan := enginetest.QuickPlan(enginetest.RpcPoint(engine.CallStream, 64, 64))
	plan.Iterations, plan.Duration, plan.Depth = 0, time.Minute, 2
	res, err := enginetest.CutShort(t,
		enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)}),
		client, plan)
	if !errors.Is(err, engine.ErrInterrupted) || res.Operations == 0 || res.Latency == nil || res.CPU == nil ||
		res.CPU.ServerSeconds == 0 {
		t.Errorf("%v; %d operations, CPU %+v", err, res.Operations, res.CPU)
	}
}
