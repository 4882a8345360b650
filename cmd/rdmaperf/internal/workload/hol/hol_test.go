package hol

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// holPoints are all variants and bulk kinds at the sizes given.
func holPoints(sizes ...int) []engine.Point {
	var points []engine.Point
	for _, variant := range Variants() {
		for _, op := range []string{"write", "send"} {
			if variant == AppSlicing && op == "send" || variant == Device {
				continue // refused, and two-qp on another stack
			}
			for _, size := range sizes {
				points = append(points, NewPoint(op, size, variant, Options{}))
			}
		}
	}
	return points
}

// with gives points their options.
func with(o Options, points ...engine.Point) []engine.Point {
	for i := range points {
		points[i].Options = engine.PackOptions(o)
	}
	return points
}

// Every variant, bulk operation and pacing takes the exact number of probes in both
// views, moves bulk in both, and finds all bytes in place.
func TestHeadOfLineIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, interval := range []time.Duration{0, 50 * time.Microsecond} {
			t.Run(fmt.Sprintf("%s/%v", name, interval), func(t *testing.T) {
				plan := enginetest.QuickPlan(with(Options{BulkDepth: 5, ProbeInterval: interval},
					holPoints(65, 100_000)...)...)
				plan.Iterations, plan.WarmupIterations = 30, 5
				results, err := enginetest.RunPoints(t, e, plan)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
					pt := plan.Points[i]
					h := holresults.Of(&r)
					if h == nil || !r.Verified || r.Errors != 0 || r.RoundTrip != reports.RoundTripFull {
						t.Fatalf("%v: %+v, want a verified full round trip", pt, r)
					}
					if h.ProbeAlone.Count != 30 || h.ProbeLoaded.Count != 30 {
						t.Errorf("%v: %d probes alone and %d loaded, want 30", pt, h.ProbeAlone.Count,
							h.ProbeLoaded.Count)
					}
					if h.BulkAloneBytesPerSecond <= 0 || h.BulkLoadedBytesPerSecond <= 0 || r.Operations == 0 {
						t.Errorf("%v: bulk %v alone, %v loaded, %d operations, want some", pt,
							h.BulkAloneBytesPerSecond, h.BulkLoadedBytesPerSecond, r.Operations)
					}
					if h.Arm != pt.Variant || h.BulkSizeBytes != int64(pt.Size) || h.ProbeSizeBytes != 64 ||
						h.ProbeIntervalNs != int64(interval) || r.Depth != 5 {
						t.Errorf("%v: %+v", pt, h)
					}
					if qps := map[string]int{SameQP: 1, TwoQP: 2, AppSlicing: 1,
						Device: 2}[pt.Variant]; r.QPs != qps {
						t.Errorf("%v: %d QPs, want %d", pt, r.QPs, qps)
					}
				}
			})
		}
	}
}

// A duration bounds every phase, whatever is due.
func TestHeadOfLineByDuration(t *testing.T) {
	// more than can be done
	plan := enginetest.QuickPlan(with(Options{ProbeInterval: time.Microsecond}, holPoints(64<<10)...)...)
	plan.Iterations, plan.Duration = 0, 50*time.Millisecond
	results, err := enginetest.RunPoints(t, enginetest.IwarpEnds, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.DurationNs < int64(plan.Duration) || !r.Verified || holresults.Of(&r).ProbeLoaded.Count == 0 {
			t.Errorf("%s %s: %v, verified %v, %d probes", r.Op, holresults.Of(&r).Arm, time.Duration(r.DurationNs),
				r.Verified, holresults.Of(&r).ProbeLoaded.Count)
		}
	}
}

// sides are both ends of a point.
var sides = [2]engine.NewSide{func(c *engine.Group) (engine.Side, error) { return newHOLClient(c) }, newHOLServer}

// The loops of both sides allocate nothing per probe or bulk operation.
func TestHeadOfLineAllocatesNothing(t *testing.T) {
	for _, pt := range holPoints(256) {
		t.Run(pt.String(), func(t *testing.T) {
			client, server := enginetest.Pair(t, enginetest.MemEnds, enginetest.QuickPlan(pt), shape, sides)
			h := client.Side.(*holClient)
			h.parts, h.pace = parts{bulk: true, probes: true}, engine.NewPacer(1000, false, 1)
			enginetest.Once(t, client, server, 1, engine.Limits{Ops: 100})
			release := engine.HoldCollector()
			defer release()
			out := enginetest.Once(t, client, server, 2, engine.Limits{Ops: 10000})
			if n := out.Rec.Count(); n != 10000 || out.Ops == 0 {
				t.Fatalf("%d probes, %d bulk operations, want 10000 and some", n, out.Ops)
			}
			if out.Usage.Allocations > enginetest.PhaseAllocations {
				t.Errorf("%d allocations, want none of the loops", out.Usage.Allocations)
			}
		})
	}
}

// One changed bit is found in a probe, in its echo and in bulk.
func TestHeadOfLineFindsOneChangedBit(t *testing.T) {
	for _, op := range []string{"write", "send"} {
		for _, variant := range StandardVariants() {
			for _, who := range []string{"probe", "bulk"} {
				t.Run(op+"/"+variant+"/"+who, func(t *testing.T) {
					const size, at = 5000, 21
					f := &enginetest.Fault{}
					f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
						for i := range ops {
							op := &ops[i]
							hit := op.Kind != transports.KindRecv && (op.Len == size) == (who == "bulk") && op.Len > at
							if hit {
								s.Local()[op.Local+at] ^= 0x10
							}
							n, err := s.Post(ops[i : i+1])
							if hit {
								s.Local()[op.Local+at] ^= 0x10
							}
							if n == 0 {
								return i, err
							}
						}
						return len(ops), nil
					}
					plan := enginetest.QuickPlan(NewPoint(op, size, variant, Options{}))
					results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
					var bad *engine.CorruptionError
					if reports.Code(err) != reports.ExitCorruption || !errors.As(err, &bad) {
						t.Fatalf("error %v (exit %d), want a corruption and exit 4", err, reports.Code(err))
					}
					if bad.Offset != at || bad.Want^bad.Got != 0x10 ||
						!strings.Contains(bad.What, map[string]string{"probe": "probe", "bulk": "message 0"}[who]) {
						t.Errorf("%v: want bit 4 of byte %d of the %s", bad, at, who)
					}
					if len(results) != 1 || results[0].Verified || results[0].Errors != 1 {
						t.Errorf("result %+v, want one with an error and unverified", results)
					}
				})
			}
		}
	}
}

// A bulk write that is lost late leaves older bytes of the same pattern.
func TestHeadOfLineFindsLateLoss(t *testing.T) {
	f := &enginetest.Fault{}
	var posted int
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		changed := append([]transports.Op(nil), ops...)
		for i := range changed {
			if changed[i].Kind == transports.KindWrite {
				if posted++; posted > 150 {
					changed[i].Len = 0
				}
			}
		}
		return s.Post(changed)
	}
	plan := enginetest.QuickPlan(NewPoint("write", 1000, SameQP, Options{}))
	plan.Iterations = 100
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan); reports.Code(err) != reports.ExitCorruption {
		t.Errorf("error %v, want a corruption", err)
	}
}

// Lost probes and lost bulk cost the timeout, not a hang.
func TestHeadOfLineEndsInTime(t *testing.T) {
	for _, pt := range holPoints(500) {
		t.Run(pt.String(), func(t *testing.T) {
			t.Parallel() // all wait for the same second, and poll
			var posted int64
			f := &enginetest.Fault{}
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				for i := range ops {
					if ops[i].Kind != transports.KindRecv {
						if posted++; posted > 100 {
							continue // taken, and gone
						}
					}
					if k, err := s.Post(ops[i : i+1]); k == 0 {
						return i, err
					}
				}
				return len(ops), nil
			}
			plan := enginetest.QuickPlan(with(Options{ProbeInterval: 10 * time.Microsecond}, pt)...)
			plan.Timeout = time.Second
			if _, err := enginetest.RunPoints(t, enginetest.WithFault(f),
				plan); reports.Code(err) != reports.ExitPeer || !errors.Is(err, engine.ErrStalled) {
				t.Errorf("error %v (exit %d), want no progress and exit 5", err, reports.Code(err))
			}
		})
	}
}

// A pause between probes longer than the timeout is no stall.
func TestHeadOfLineWaitsForTheNextProbe(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("write", 500, TwoQP, Options{}))
	plan.Timeout = 700 * time.Millisecond
	client, server := enginetest.Pair(t, enginetest.MemEnds, plan, shape, sides)
	h := client.Side.(*holClient)
	h.parts, h.pace = parts{probes: true}, engine.NewPacer(14e8, false, 1)
	if out := enginetest.Once(t, client, server, 1, engine.Limits{Ops: 2}); out.Window < 1400*time.Millisecond {
		t.Errorf("2 probes took %v, want an interval at least", out.Window)
	}
}

// Probes carry the priority, bulk does not.
func TestProbesCarryThePriority(t *testing.T) {
	f := &enginetest.Fault{}
	wrong := 0
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		for _, op := range ops {
			if op.Kind == transports.KindSend && op.Len == 64 && op.Priority != 3 || op.Kind == transports.KindWrite &&
				op.Priority != 0 {
				wrong++
			}
		}
		return s.Post(ops)
	}
	plan := enginetest.QuickPlan(NewPoint("write", 500, SameQP, Options{ProbePriority: 3}))
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan); err != nil || wrong > 0 {
		t.Errorf("%d operations with another priority, error %v", wrong, err)
	}
}

// The application's slices are no longer than asked for, no more of them are
// outstanding than asked for, and every message that is begun is ended.
func TestApplicationSlices(t *testing.T) {
	const size, slice, window = 5000, 2048, 3
	out, most, messages, bytes := 0, 0, 0, 0
	f := &enginetest.Fault{}
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		n, err := s.Post(ops)
		for _, op := range ops[:n] {
			if op.Kind != transports.KindWrite {
				continue
			}
			if op.Len > slice {
				t.Errorf("a slice of %d bytes", op.Len)
			}
			out++
			most = max(most, out)
			if bytes += int(op.Len); bytes%size == 0 {
				messages++
			}
		}
		return n, err
	}
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		for _, d := range dst[:n] {
			if d.Kind == transports.KindWrite {
				out--
			}
		}
		return n, err
	}
	plan := enginetest.QuickPlan(NewPoint("write", size, AppSlicing, Options{AppSlice: slice, AppWindow: window}))
	plan.Iterations = 50
	results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
	if err != nil {
		t.Fatal(err)
	}
	if h := holresults.Of(&results[0]); !results[0].Verified || h.AppSliceBytes != slice || h.AppWindow != window ||
		h.BulkLoadedBytesPerSecond <= 0 {
		t.Errorf("result %+v, hol %+v", results[0], h)
	}
	if most != window || bytes%size != 0 || messages == 0 {
		t.Errorf("at most %d outstanding, want %d; %d bytes, want whole messages of %d", most, window, bytes, size)
	}
}

// Plans that make no sense are refused before anything runs.
func TestHeadOfLinePlansAreChecked(t *testing.T) {
	good := NewPoint("write", 1000, SameQP, Options{})
	bent := func(o Options) func(*engine.Plan) {
		return func(p *engine.Plan) { with(o, p.Points...) }
	}
	tr, _ := enginetest.MemEnds(t)
	caps := tr.Caps()
	for what, bend := range map[string]func(*engine.Plan){
		"unknown arm":       func(p *engine.Plan) { p.Points[0].Variant = "three-qp" },
		"slices of sends":   func(p *engine.Plan) { p.Points[0].Op, p.Points[0].Variant = "send", AppSlicing },
		"tiny slices":       bent(Options{AppSlice: 100}),
		"no window":         bent(Options{AppWindow: -1}),
		"reads as bulk":     func(p *engine.Plan) { p.Points[0].Op = "read" },
		"probe as bulk":     bent(Options{ProbeSize: 1000}),
		"default too large": func(p *engine.Plan) { p.Points[0].Size = 64 },
		"event polling":     func(p *engine.Plan) { p.Polling = engine.PollingEvent },
		"negative interval": bent(Options{ProbeInterval: -1}),
		"rare probes":       bent(Options{ProbeInterval: time.Minute}),
		"bulk depth":        bent(Options{BulkDepth: 1 << 20}),
		"unknown options":   func(p *engine.Plan) { p.Points[0].Options = `{"colour":1}` },
		"no options":        func(p *engine.Plan) { p.Points[0].Options = "none" },
	} {
		plan := enginetest.QuickPlan(good)
		if err := enginetest.Refusal(plan, caps, shape); err != nil {
			t.Fatal(err)
		}
		bend(&plan)
		if err := enginetest.Refusal(plan, caps, shape); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
}
