package enginetest

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Measure runs the points of a plan on a scripted stack in a bubble. Of every four ns this process uses process of
// processor time, and the machine machine. A point that fails is the last one.
func Measure(t *testing.T, f *scripted.Fabric, plan engine.Plan, process,
	machine time.Duration) (results []reports.Result) {
	t.Helper()
	Bubble(t, f, plan, nil, process, machine, func(ctx context.Context, c *engine.Client) {
		for i, pt := range plan.Points {
			r, err := First(c.Run(ctx, i))
			if err != nil {
				t.Errorf("%s: %v", pt, err)
				return
			}
			results = append(results, r)
		}
	})
	return results
}

// Bubble gives run a client of such a stack, with a server in the bubble that is made of s; nil for any.
func Bubble(t *testing.T, f *scripted.Fabric, plan engine.Plan, s *engine.Server, process, machine time.Duration,
	run func(ctx context.Context, c *engine.Client)) {
	t.Helper()
	defer engine.RestartClock()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		engine.RestartClock()
		cpu, sleep := engine.ReadCPU, drive.Sleep
		engine.ReadCPU = func() (time.Duration, time.Duration, int64) {
			d := time.Since(began)
			return d * process / 4, d * machine / 4, 0
		}
		drive.Sleep = func(ns int64) { time.Sleep(time.Duration(ns)) }
		defer func() { engine.ReadCPU, drive.Sleep = cpu, sleep }()
		client, server := f.Ends()
		defer func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}()
		plan.Transport, plan.Seed, plan.ClientCPU, plan.ServerCPU, plan.Timeout = "scripted", 1, -1, -1, 20*time.Second
		near, far := net.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		served := make(chan struct{})
		go func() { // ends with the client's end of the pipe
			defer close(served)
			if s == nil {
				s = &engine.Server{}
			}
			s.Workloads, s.Open = plan.Workloads, func(string) (transports.Stack, error) { return server, nil }
			s.ServeConn(ctx, far)
		}()
		defer func() { <-served }()
		c, err := engine.ConnectConn(ctx, near, client, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		run(ctx, c)
	})
}

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
