package incast

import (
	"math"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

// Every client sends its share, verified, from a thread or, by calls, on a connection of its own.
func TestIncastCountsEveryClient(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) {
			for _, clients := range []int{1, 5} {
				for _, op := range []string{"send", "write"} {
					countsEveryClient(t, e, engine.Point{Workload: Name, Op: op, Size: 3000, QPs: clients})
				}
			}
		})
	}
	for _, name := range []string{"unix", "dropin iwarp", "fused iwarp"} {
		t.Run("calls, "+name, func(t *testing.T) {
			countsEveryClient(t, enginetest.CarriersUnderTest()[name], engine.Point{Workload: Name, Op: "call", Size: 3000,
				QPs: 5, Call: engine.CallUnary, Response: 8})
		})
	}
}

func countsEveryClient(t *testing.T, e enginetest.Ends, pt engine.Point) {
	plan := enginetest.QuickPlan(pt)
	plan.Iterations, plan.WarmupIterations, plan.Depth = 60, 10, 3
	r := workloadtest.Results(t, e, plan)[0]
	n, in := pt.QPs, Of(&r)
	if in == nil || r.Operations != int64(60*n) || !r.Verified || r.QPs != n || r.Depth != 3 || in.Clients != n ||
		len(in.PerClient) != n || r.Throughput.BytesPerSecond <= 0 {
		t.Fatalf("%s: %+v, incast %+v", pt, r, in)
	}
	for _, c := range in.PerClient {
		if c.Operations != 60 || c.DurationNs <= 0 || c.BytesPerSecond < in.MinBytesPerSecond ||
			c.BytesPerSecond > in.MaxBytesPerSecond {
			t.Errorf("%s: a client with %+v of %+v", pt, c, in)
		}
	}
	if in.Jain < 1/float64(n) || in.Jain > 1+1e-9 {
		t.Errorf("%s: Jain index %v", pt, in.Jain)
	}
	if v := r.Verification; pt.Call != "" && (v.Whole != 600 || v.Mode != reports.VerifyAll || r.Latency != nil) {
		t.Errorf("%s: compared %+v, latency %+v", pt, v, r.Latency)
	}
	if pt.Call == "" && (r.Threads != n || r.Parameters["server_threads"] != 1) {
		t.Errorf("%s: %d threads and %v of the server", pt, r.Threads, r.Parameters["server_threads"])
	}
}

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
	few := engine.Point{Workload: Name, Op: "write", Size: 64, QPs: 3}
	if sh := enginetest.ShapeOf(t, enginetest.QuickPlan(few), tr.Caps(), tr.Caps(), shape); sh.Idle || sh.Threads != 3 {
		t.Errorf("the target sleeps: %v, %d threads", sh.Idle, sh.Threads)
	}
	workloadtest.Refused(t, tr.Caps(), shape, few, map[string]func(p *engine.Plan){
		"polling": func(p *engine.Plan) { p.Polling = engine.PollingEvent },
		"clients": func(p *engine.Plan) { p.Points[0].QPs = engine.MaxThreads + 1 },
		"reads":   func(p *engine.Plan) { p.Points[0].Op = "read" },
	})
	enginetest.Works(t, addr, tr)
}

func TestJainIndex(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{
		{[]float64{5, 5, 5}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}, {[]float64{0, 0}, 0},
		{[]float64{1e300, 1e300}, 1},
	} {
		if got := jain(c.rates); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Jain index of %v = %v, want %v", c.rates, got, c.want)
		}
	}
}
