package incast

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	incastresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast/results"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Every client sends exactly its share, verified, from a thread of its own to the
// one thread of the server.
func TestIncastCountsEveryClient(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan()
			for _, clients := range []int{1, 5} {
				for _, op := range []string{"send", "write"} {
					plan.Points = append(plan.Points, engine.Point{Workload: Name, Op: op, Size: 3000, QPs: clients})
				}
			}
			plan.Iterations, plan.WarmupIterations = 60, 10
			results, err := enginetest.RunPoints(t, e, plan)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				n := plan.Points[i].QPs
				in := incastresults.Of(&r)
				if r.Operations != int64(60*n) || !r.Verified || r.QPs != n || r.Threads != n || in == nil ||
					in.Clients != n || len(in.PerClient) != n {
					t.Fatalf("%s: %+v, incast %+v", plan.Points[i], r, in)
				}
				for _, c := range in.PerClient {
					if c.Operations != 60 || c.BytesPerSecond < in.MinBytesPerSecond ||
						c.BytesPerSecond > in.MaxBytesPerSecond || c.DurationNs <= 0 {
						t.Errorf("%s: a client with %+v of %+v", plan.Points[i], c, in)
					}
				}
				if in.Jain < 1/float64(n) || in.Jain > 1+1e-9 || r.Parameters["server_threads"] != 1 {
					t.Errorf("%s: Jain index %v, server threads %v", plan.Points[i], in.Jain,
						r.Parameters["server_threads"])
				}
			}
		})
	}
}

// Each client has a worker.
func TestClientsOfAnIncastHaveShares(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds,
		enginetest.QuickPlan(engine.Point{Workload: Name, Op: "write", Size: 64, QPs: 4}), shape,
		[2]engine.NewSide{drive.NewFlow, drive.NewFlow})
	if len(client.Workers) != 4 {
		t.Fatalf("%d workers, want 4", len(client.Workers))
	}
	out := enginetest.Once(t, client, server, 1, engine.Limits{Dur: 30 * time.Millisecond})
	var sum int64
	for _, s := range out.Shares {
		sum += s.Ops
	}
	if len(out.Shares) != 4 || sum != out.Ops || sum == 0 {
		t.Errorf("shares %+v, want those of 4 clients that make %d operations", out.Shares, out.Ops)
	}
}

// A server holds an incast against its limits, and goes on.
func TestServerBoundsTheClientsOfAnIncast(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table, MaxWindow: 1 << 20})
	plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "write", Size: 64 << 10, QPs: 200})
	if _, err := engine.Connect(t.Context(), addr, tr, plan); reports.Code(err) != reports.ExitUsage {
		t.Errorf("windows above the server's limit: %v, want a usage error", err)
	}
	for what, bend := range map[string]func(p *engine.Plan){
		"polling": func(p *engine.Plan) { p.Polling = engine.PollingEvent },
		"clients": func(p *engine.Plan) { p.Points[0].QPs = engine.MaxThreads + 1 },
		"reads":   func(p *engine.Plan) { p.Points[0].Op = "read" },
	} {
		plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "write", Size: 64, QPs: 3})
		if sh := enginetest.ShapeOf(t, plan, tr.Caps(), tr.Caps(), shape); sh.Idle || sh.Threads != 3 {
			t.Errorf("the target sleeps: %v, %d threads", sh.Idle, sh.Threads)
		}
		bend(&plan)
		if err := enginetest.Refusal(plan, tr.Caps(), shape); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
	enginetest.Works(t, addr, tr)
}
