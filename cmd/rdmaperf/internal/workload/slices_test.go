package workload_test

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// dials counts the sessions of a stack.
type dials struct {
	transports.Transport
	n int
}

func (d *dials) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	d.n++
	return d.Transport.Dial(ctx, addr, hello, cfg)
}

// slicesOf runs a point in five slices, of which the client wants so many, and returns their results.
func slicesOf(t *testing.T, client, server transports.Stack, pt engine.Point, wanted int) (all []reports.Result) {
	t.Helper()
	plan := enginetest.QuickPlan(pt)
	plan.Rounds, plan.WarmupIterations, plan.VerifyAll = 5, 20, true
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	c, err := engine.Connect(t.Context(), addr, client, plan)
	must(t, err)
	defer c.Close()
	turns := 0
	c.Turn = func(results []reports.Result) bool {
		all = append(all, results...)
		turns++
		return turns < wanted
	}
	last, err := c.Run(t.Context(), 0)
	must(t, err)
	return append(all, last...)
}

// A point in slices has one set of sessions and a whole result for each slice.
func TestSlicesShareTheirSessions(t *testing.T) {
	prime(t)
	for _, pt := range []engine.Point{
		{Workload: "latency", Op: "send", Size: 64}, {Workload: "latency", Op: "read", Size: 64},
		{Workload: "throughput", Op: "write", Size: 4096}, {Workload: "throughput", Op: "send", Size: 4096},
		{Workload: "throughput", Op: "send", Size: 4096, Bidirectional: true},
	} {
		t.Run(pt.String(), func(t *testing.T) {
			client, server := enginetest.SessionEnds(t, enginetest.IwarpEnds)
			d := &dials{Transport: client}
			results := slicesOf(t, d, server, pt, 5)
			if len(results) != 5 || d.n != 1 {
				t.Errorf("%d results by %d sessions, want 5 by 1", len(results), d.n)
			}
			for i, r := range results {
				v := r.Verification
				if r.Operations < 300 || !r.Verified || r.Errors != 0 || v == nil || v.Whole < 300 ||
					v.Messages > 2*r.Operations+100 {
					t.Errorf("slice %d: %d operations, %d errors, compared %+v", i, r.Operations, r.Errors, v)
				}
			}
		})
	}
	pt := enginetest.RpcPoint("unary", 64, 64)
	client, server := enginetest.CarriersUnderTest()["fused mem"](t)
	results := slicesOf(t, client, server, pt, 5)
	idle := callsresults.Of(&results[0]).Idle
	for i, r := range results {
		if now := callsresults.Of(&r).Idle; idle == nil || now == nil || *now != *idle {
			t.Errorf("slice %d: idle %+v, and in the first %+v: it is watched once", i, now, idle)
		}
		if r.Operations != 300 || !r.Verified || r.Verification.Whole != 300 {
			t.Errorf("slice %d of calls: %d operations, compared %+v", i, r.Operations, r.Verification)
		}
	}
	if len(results) != 5 {
		t.Errorf("%d results of calls, want 5", len(results))
	}
}

// Whoever has enough ends a point between two slices, and the client takes the next point.
func TestAPointEndsBetweenSlices(t *testing.T) {
	prime(t)
	client, server := enginetest.MemEnds(t)
	if n := len(slicesOf(t, client, server, engine.Point{Workload: "latency", Op: "send", Size: 64}, 2)); n != 2 {
		t.Errorf("%d results, want 2", n)
	}
}

// What made the slices of one point longer does not make those of the next.
func TestTheLengthOfSlicesIsThatOfAPoint(t *testing.T) {
	prime(t)
	client, server := enginetest.MemEnds(t)
	pt := engine.Point{Workload: "latency", Op: "send", Size: 64}
	plan := enginetest.QuickPlan(pt, pt)
	plan.Rounds, plan.Iterations, plan.Duration = 2, 0, time.Millisecond
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)})
	c, err := engine.Connect(t.Context(), addr, client, plan)
	must(t, err)
	defer c.Close()
	const long = 30 * time.Millisecond
	c.Turn = func([]reports.Result) bool {
		if c.Slice != 0 {
			t.Errorf("slices of %v before the first one was seen", c.Slice)
		}
		c.Slice = long
		return true
	}
	for i := range plan.Points {
		last, err := enginetest.First(c.Run(t.Context(), i))
		if err != nil || last.DurationNs < int64(long) {
			t.Errorf("point %d: a slice of %d ns, want %v, %v", i, last.DurationNs, long, err)
		}
	}
}
