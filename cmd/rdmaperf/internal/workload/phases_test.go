package workload_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func withClient(t *testing.T, plan engine.Plan, s *engine.Server, run func(ctx context.Context, c *engine.Client)) {
	t.Helper()
	prime(t)
	if plan.Workloads == nil {
		plan.Workloads = catalogue.Table()
	}
	enginetest.Bubble(t, &scripted.Fabric{Times: script()}, plan, s, processShare, machineShare, run)
}

func smallCalls() engine.Point {
	return engine.Point{Workload: rpc.Name, Op: "call", Call: engine.CallUnary, Size: small, Response: small}
}

// Samples of probes by calls are kept under their names, of the bulk none; what cannot keep them ends the point.
func TestScriptedHeadOfLineByCalls(t *testing.T) {
	const n, call = 25, out + back
	pt := hol.NewPoint("call", 20_000, hol.TwoQP, hol.Options{BulkDepth: 3})
	plan := engine.Plan{Points: []engine.Point{pt, pt}, Iterations: n, Verify: true}
	full := errors.New("no room")
	for _, refused := range []string{"", reports.SamplesProbeAlone, reports.SamplesProbeLoaded} {
		withClient(t, plan, nil, func(ctx context.Context, c *engine.Client) {
			kept := map[string]int64{}
			c.KeepSamples(1000, func(s *engine.Samples) error {
				if s.Set == refused {
					return full
				}
				return s.Each(func(v reports.Sample) error {
					if kept[s.Set]++; v.Ns != call || v.ServiceNs != call {
						t.Errorf("%s: a sample %+v, want %d ns", s.Set, v, call)
					}
					return nil
				})
			})
			for i := range plan.Points { // the second one shows that the first was ended with
				clear(kept)
				r, err := enginetest.First(c.Run(ctx, i))
				if refused != "" {
					if !errors.Is(err, full) || r.Verified {
						t.Errorf("samples of %s refused: %v, verified %v", refused, err, r.Verified)
					}
					return
				}
				if err != nil || !r.Verified || r.Errors != 0 {
					t.Fatalf("%v, verified %v, %d errors", err, r.Verified, r.Errors)
				}
				h := hol.Of(&r)
				if h.ProbeAlone.Count != n || h.ProbeAlone.Mean != call || h.ProbeLoaded.Count != n ||
					h.BulkAloneBytesPerSecond == 0 || h.BulkLoadedBytesPerSecond == 0 {
					t.Errorf("alone %+v, loaded %+v, bulk %v and %v", h.ProbeAlone, h.ProbeLoaded,
						h.BulkAloneBytesPerSecond, h.BulkLoadedBytesPerSecond)
				}
				if want := map[string]int64{reports.SamplesProbeAlone: n,
					reports.SamplesProbeLoaded: n}; !maps.Equal(kept, want) {
					t.Errorf("samples of %v, want %v", kept, want)
				}
			}
		})
	}
}

// The server says what is resident behind the window, what idling costs before it; counters are of the window.
func TestScriptedCallsBesideTheirWindow(t *testing.T) {
	plan := engine.Plan{Points: []engine.Point{smallCalls(), smallCalls()}, Iterations: 10, WarmupIterations: 2,
		Verify: true}
	var log bytes.Buffer
	s := &engine.Server{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	withClient(t, plan, s, func(ctx context.Context, c *engine.Client) {
		read := int64(0)
		c.Counters = func() []reports.DeviceCounters {
			read += 7
			return []reports.DeviceCounters{{Device: "d", Counters: map[string]int64{"n": read}}}
		}
		for i := range plan.Points {
			r, err := enginetest.First(c.Run(ctx, i))
			if err != nil || !r.Verified || r.Errors != 0 {
				t.Fatalf("%v, verified %v, %d errors", err, r.Verified, r.Errors)
			}
			d := r.Detail.(*callsresults.RPC)
			if i := d.Idle; i == nil || i.DurationNs != int64(drive.IdleWindow) ||
				!near(i.ClientSeconds, drive.IdleWindow.Seconds()*processShare/4) ||
				!near(i.ServerSeconds, i.ClientSeconds) {
				t.Errorf("idle %+v, want %v", i, drive.IdleWindow)
			}
			if m := d.Resident; m == nil || m.ServerBytes < 1<<20 || m.ClientBytes < 1<<20 {
				t.Errorf("resident %+v, want that of this process", m)
			}
			if n := r.Counters; n == nil || len(n.Client) != 1 || n.Client[0].Counters["n"] != 7 {
				t.Errorf("counters %+v, want one reading of 7 around the window", n)
			}
		}
	})
	if strings.Contains(log.String(), "close server of calls") {
		t.Errorf("an end without a failure is told:\n%s", log.String())
	}
}

// A point of calls that is interrupted has what was done, of both sides.
func TestScriptedCallsAreInterrupted(t *testing.T) {
	withClient(t, engine.Plan{Points: []engine.Point{smallCalls()}, Iterations: 1 << 40, Verify: true}, nil,
		func(ctx context.Context, c *engine.Client) {
			ctx, cancel := context.WithTimeout(ctx, drive.IdleWindow+time.Millisecond)
			defer cancel()
			r, err := enginetest.First(c.Run(ctx, 0))
			if !errors.Is(err, engine.ErrInterrupted) || r.Errors != 0 || !r.Interrupted || !r.Verified {
				t.Errorf("%v, %d errors, interrupted %v, verified %v, want an interrupt of what was right", err, r.Errors,
					r.Interrupted, r.Verified)
			}
			if r.Operations < 1 || r.CPU == nil || r.CPU.ServerSeconds <= 0 {
				t.Errorf("%d calls, %+v, want those of both sides", r.Operations, r.CPU)
			}
		})
}

type broken struct {
	engine.CallService
	ended error // of its end
	call  func()
}

func (b *broken) Close() error { return errors.Join(b.CallService.Close(), b.ended) }
func (b *broken) ServeCall(c *transports.Served) error {
	if b.call != nil {
		b.call()
	}
	return b.CallService.ServeCall(c)
}

type serving func(s engine.CallService, fail func(error)) engine.CallService

func (f serving) Client(ctx context.Context, r *engine.Run) error {
	return new(rpc.Workload).Client(ctx, r)
}

func (f serving) Server(ctx context.Context, s *engine.Serve) error {
	sh, err := rpc.Shape(&s.Setup, 1)
	if err != nil {
		return err
	}
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	return drive.ServeCalls(ctx, s, sh, drive.CallConfig(sh, 1), f(rpc.BytesOf(sh).Service(fails.Fail), fails.Fail), fails)
}

// calls gives a client to run that is to make n calls.
func (f serving) calls(t *testing.T, n int64, run func(ctx context.Context, c *engine.Client)) {
	t.Helper()
	withClient(t, engine.Plan{Points: []engine.Point{smallCalls()}, Iterations: n, Verify: true,
		Workloads: engine.Table{rpc.Name: {Runner: f}}}, nil, run)
}

// A service that cannot be ended fails its point, whose calls were all well.
func TestAServiceThatDoesNotEndFailsItsPoint(t *testing.T) {
	for _, ended := range []error{nil, errors.New("store is damaged")} {
		serving(func(s engine.CallService, _ func(error)) engine.CallService {
			return &broken{CallService: s, ended: ended}
		}).calls(t, 10, func(ctx context.Context, c *engine.Client) {
			if _, err := enginetest.First(c.Run(ctx, 0)); (err == nil) != (ended == nil) ||
				err != nil && !strings.Contains(err.Error(), ended.Error()) {
				t.Errorf("%v, want %v", err, ended)
			}
		})
	}
}

// What a service finds in the last call of a phase fails the point, whatever the server learns of first.
func TestAFailureInTheLastCallFailsItsPoint(t *testing.T) {
	const n = 5
	found := errors.New("found in the last call")
	for yields := range 40 {
		serving(func(s engine.CallService, fail func(error)) engine.CallService {
			calls := 0
			return &broken{CallService: s, call: func() {
				if calls++; calls == n {
					go func() {
						for range yields {
							runtime.Gosched()
						}
						fail(found)
					}()
				}
			}}
		}).calls(t, n, func(ctx context.Context, c *engine.Client) {
			// A client that says the end while the server leaves learns of that alone.
			if _, err := enginetest.First(c.Run(ctx, 0)); err == nil {
				t.Errorf("after %d yields: all is well, want %v", yields, found)
			}
		})
	}
}

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
func slicesOf(t *testing.T, e enginetest.Ends, pt engine.Point, wanted int) (all []reports.Result) {
	t.Helper()
	plan := enginetest.QuickPlan(pt)
	plan.Rounds, plan.WarmupIterations, plan.VerifyAll = 5, 20, true
	c, err := enginetest.Client(t, e, plan)
	must(t, err)
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
			d := new(dials)
			results := slicesOf(t, func(t testing.TB) (_, server transports.Stack) {
				d.Transport, server = enginetest.SessionEnds(t, enginetest.IwarpEnds)
				return d, server
			}, pt, 5)
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
	results := slicesOf(t, enginetest.CarriersUnderTest()["fused mem"], pt, 5)
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
	pt := engine.Point{Workload: "latency", Op: "send", Size: 64}
	if n := len(slicesOf(t, enginetest.MemEnds, pt, 2)); n != 2 {
		t.Errorf("%d results, want 2", n)
	}
}

// What made the slices of one point longer does not make those of the next.
func TestTheLengthOfSlicesIsThatOfAPoint(t *testing.T) {
	prime(t)
	pt := engine.Point{Workload: "latency", Op: "send", Size: 64}
	plan := enginetest.QuickPlan(pt, pt)
	plan.Rounds, plan.Iterations, plan.Duration = 2, 0, time.Millisecond
	c, err := enginetest.Client(t, enginetest.MemEnds, plan)
	must(t, err)
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
