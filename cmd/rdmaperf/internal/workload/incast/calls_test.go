package incast

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	incastresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/incast/results"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Every client of calls makes exactly its share on a connection of its own, compared by
// both sides.
func TestIncastByCallsCountsEveryClient(t *testing.T) {
	for _, name := range []string{"unix", "dropin iwarp", "fused iwarp"} {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan(engine.Point{Workload: Name, Op: "call", Size: 3000, QPs: 5,
				Call: engine.CallUnary, Response: 8})
			plan.Iterations, plan.WarmupIterations, plan.Depth = 60, 10, 3
			r, err := enginetest.First(enginetest.RunPoints(t, enginetest.CarriersUnderTest()[name], plan))
			if err != nil {
				t.Fatal(err)
			}
			in := incastresults.Of(&r)
			if r.Operations != 300 || !r.Verified || r.QPs != 5 || r.Depth != 3 || in == nil || in.Clients != 5 ||
				len(in.PerClient) != 5 || r.Latency != nil {
				t.Fatalf("%+v, incast %+v", r, in)
			}
			for _, c := range in.PerClient {
				if c.Operations != 60 || c.DurationNs <= 0 || c.BytesPerSecond < in.MinBytesPerSecond ||
					c.BytesPerSecond > in.MaxBytesPerSecond {
					t.Errorf("a client with %+v of %+v", c, in)
				}
			}
			if in.Jain < 0.2 || in.Jain > 1+1e-9 || r.Throughput.BytesPerSecond <= 0 || r.Verification.Whole != 600 ||
				r.Verification.Mode != reports.VerifyAll {
				t.Errorf("Jain index %v, %+v, %+v", in.Jain, r.Throughput, r.Verification)
			}
		})
	}
}
