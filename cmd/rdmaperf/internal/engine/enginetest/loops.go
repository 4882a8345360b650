package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Only is the shape of a workload, without what else it makes of a point.
func Only[O any](shape func(*engine.Setup) (*engine.Shape, O, error)) func(*engine.Setup) (*engine.Shape, error) {
	return func(s *engine.Setup) (*engine.Shape, error) {
		sh, _, err := shape(s)
		return sh, err
	}
}

// Changing posts what bend makes of each operation.
func Changing(bend func(s transports.Session, op *transports.Op)) *Fault {
	return &Fault{Post: func(s transports.Session, ops []transports.Op) (int, error) {
		changed := append([]transports.Op(nil), ops...)
		for i := range changed {
			bend(s, &changed[i])
		}
		return s.Post(changed)
	}}
}

// Losing polls without completions that lost says are lost.
func Losing(lost func(d transports.Done) bool) *Fault {
	return &Fault{Poll: func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		kept := dst[:0]
		for _, d := range dst[:n] {
			if !lost(d) {
				kept = append(kept, d)
			}
		}
		return len(kept), err
	}}
}

// Stalls requires that a plan which makes no progress with this fault ends by its timeout.
func Stalls(t *testing.T, f *Fault, plan engine.Plan) {
	t.Helper()
	plan.Timeout = time.Second
	if _, err := RunPoints(t, WithFault(f), plan); reports.Code(err) != reports.ExitPeer ||
		!errors.Is(err, engine.ErrStalled) {
		t.Errorf("error %v (exit %d), want no progress and exit 5", err, reports.Code(err))
	}
}

// AllocatesNothing requires that a phase of n operations of a pair, behind one that warms up, allocates nothing.
func AllocatesNothing(t *testing.T, client, server *engine.Group, n int64) {
	t.Helper()
	Once(t, client, server, 1, engine.Limits{Ops: n / 50})
	defer engine.HoldCollector()()
	if out := Once(t, client, server, 2, engine.Limits{Ops: n}); out.Ops < n || out.Usage.Allocations > PhaseAllocations {
		t.Errorf("%d operations, %d allocations, want %d and none of the loop", out.Ops, out.Usage.Allocations, n)
	}
}

// MeasureAlone has work measure the point, which needs no server, by the clock of a bubble, and returns what it does.
func MeasureAlone(t *testing.T, pt engine.Point, iterations int, all bool,
	work func(context.Context, *engine.Run) ([]reports.Result, error)) (results []reports.Result, failed error) {
	t.Helper()
	pt.Alone = true
	Measure(t, &scripted.Fabric{}, engine.Plan{Points: []engine.Point{pt}, Iterations: int64(iterations), Verify: true,
		VerifyAll: all, Workloads: engine.Table{pt.Workload: {Runner: Alone(
			func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
				results, failed = work(ctx, r)
				return []reports.Result{r.Result()}, nil
			})}}}, 1, 1)
	return results, failed
}
