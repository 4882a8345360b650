package hol

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

func holPoints(sizes ...int) []engine.Point {
	var points []engine.Point
	for _, variant := range variants {
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

func with(o Options, points ...engine.Point) []engine.Point {
	for i := range points {
		points[i].Options = engine.PackOptions(o)
	}
	return points
}

// Probes are exactly counted and all bytes in place. The interval of calls makes a window of 72 ms: in a shorter one on
// a busy machine no bulk call need end.
func TestHeadOfLineIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, interval := range []time.Duration{0, 50 * time.Microsecond} {
			t.Run(fmt.Sprintf("%s/%v", name, interval), func(t *testing.T) {
				completeAndExact(t, e, Options{BulkDepth: 5, ProbeInterval: interval}, holPoints(65, 100_000)...)
			})
		}
	}
	for _, name := range []string{"bufconn", "dropin iwarp", "fused iwarp", "fused mem"} {
		for _, variant := range callVariants {
			t.Run(name+" "+variant, func(t *testing.T) {
				completeAndExact(t, enginetest.CarriersUnderTest()[name],
					Options{BulkDepth: 5, ProbeInterval: 3 * time.Millisecond, ProbeOne: true},
					NewPoint("call", 30_000, variant, Options{}))
			})
		}
	}
}

func completeAndExact(t *testing.T, e enginetest.Ends, o Options, points ...engine.Point) {
	const n = 25
	plan := enginetest.QuickPlan(with(o, points...)...)
	plan.Iterations, plan.WarmupIterations = n, 3
	gap, interval := time.Duration(0), o.ProbeInterval
	if o.ProbeOne {
		gap, interval = interval, gap
	}
	for i, r := range workloadtest.Results(t, e, plan) {
		pt, h, v := plan.Points[i], Of(&r), r.Verification
		qps := map[string]int{SameQP: 1, TwoQP: 2, AppSlicing: 1, Device: 2}[pt.Variant]
		if h == nil || !r.Verified || r.Errors != 0 || r.RoundTrip != reports.RoundTripFull {
			t.Fatalf("%v: %+v, want a verified full round trip", pt, r)
		}
		if h.ProbeAlone.Count != n || h.ProbeLoaded.Count != n || h.Probes != n {
			t.Errorf("%v: %d probes alone and %d loaded, want %d", pt, h.ProbeAlone.Count, h.ProbeLoaded.Count, n)
		}
		if h.BulkAloneBytesPerSecond <= 0 || h.BulkLoadedBytesPerSecond <= 0 || r.Operations == 0 || r.DurationNs == 0 {
			t.Errorf("%v: bulk %v alone, %v loaded, %d operations, want some", pt, h.BulkAloneBytesPerSecond,
				h.BulkLoadedBytesPerSecond, r.Operations)
		}
		if h.Arm != pt.Variant || h.BulkSizeBytes != int64(pt.Size) || h.ProbeSizeBytes != 64 || r.Depth != 5 ||
			h.ProbeIntervalNs != int64(interval) || h.ProbeGapNs != int64(gap) || r.QPs != qps {
			t.Errorf("%v: depth %d, %d QPs, %+v", pt, r.Depth, r.QPs, h)
		}
		if pt.Call != "" && (v.Whole != 2*(r.Operations+n) || v.Mode != reports.VerifyAll || h.LoadedLoop != nil ||
			r.Latency != nil || r.Throughput != nil) {
			t.Errorf("%v: compared %+v, want all of both ways; latency or throughput beside those of the probes and "+
				"the bulk", pt, v)
		}
	}
}

func TestHeadOfLineByDuration(t *testing.T) {
	// more than can be done
	plan := enginetest.QuickPlan(with(Options{ProbeInterval: time.Microsecond}, holPoints(64<<10)...)...)
	plan.Iterations, plan.Duration = 0, 50*time.Millisecond
	for _, r := range workloadtest.Results(t, enginetest.IwarpEnds, plan) {
		if r.DurationNs < int64(plan.Duration) || !r.Verified || Of(&r).ProbeLoaded.Count == 0 {
			t.Errorf("%s %s: %v, verified %v, %d probes", r.Op, Of(&r).Arm, time.Duration(r.DurationNs),
				r.Verified, Of(&r).ProbeLoaded.Count)
		}
	}
}

var sides = [2]engine.NewSide{func(c *engine.Group) (engine.Side, error) { return newClient(c) }, newTarget}

func TestHeadOfLineAllocatesNothing(t *testing.T) {
	for _, pt := range holPoints(256) {
		t.Run(pt.String(), func(t *testing.T) {
			near, far := enginetest.Pair(t, enginetest.MemEnds, enginetest.QuickPlan(pt), shape, sides)
			h := near.Side.(*client)
			h.parts, h.pace = parts{bulk: true, probes: true}, engine.NewPacer(1000, false, 1)
			enginetest.Once(t, near, far, 1, engine.Limits{Ops: 100})
			defer engine.HoldCollector()()
			out := enginetest.Once(t, near, far, 2, engine.Limits{Ops: 10000})
			if n := out.Rec.Count(); n != 10000 || out.Ops == 0 {
				t.Fatalf("%d probes, %d bulk operations, want 10000 and some", n, out.Ops)
			}
			if out.Usage.Allocations > enginetest.PhaseAllocations {
				t.Errorf("%d allocations, want none of the loops", out.Usage.Allocations)
			}
		})
	}
}

func TestHeadOfLineFindsOneChangedBit(t *testing.T) {
	for _, op := range []string{"write", "send"} {
		for _, variant := range []string{SameQP, TwoQP} {
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
	posted := 0
	f := enginetest.Changing(func(_ transports.Session, op *transports.Op) {
		if op.Kind == transports.KindWrite {
			if posted++; posted > 150 {
				op.Len = 0
			}
		}
	})
	plan := enginetest.QuickPlan(NewPoint("write", 1000, SameQP, Options{}))
	plan.Iterations = 100
	workloadtest.Corrupts(t, "a late loss", enginetest.WithFault(f), plan, "")
}

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
			enginetest.Stalls(t, f, plan)
		})
	}
}

// A pause between probes longer than the timeout is no stall.
func TestHeadOfLineWaitsForTheNextProbe(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("write", 500, TwoQP, Options{}))
	plan.Timeout = 700 * time.Millisecond
	near, far := enginetest.Pair(t, enginetest.MemEnds, plan, shape, sides)
	h := near.Side.(*client)
	h.parts, h.pace = parts{probes: true}, engine.NewPacer(14e8, false, 1)
	if out := enginetest.Once(t, near, far, 1, engine.Limits{Ops: 2}); out.Window < 1400*time.Millisecond {
		t.Errorf("2 probes took %v, want an interval at least", out.Window)
	}
}

func TestProbesCarryThePriority(t *testing.T) {
	wrong := 0
	f := enginetest.Changing(func(_ transports.Session, op *transports.Op) {
		if op.Kind == transports.KindSend && op.Len == 64 && op.Priority != 3 || op.Kind == transports.KindWrite &&
			op.Priority != 0 {
			wrong++
		}
	})
	workloadtest.Results(t, enginetest.WithFault(f),
		enginetest.QuickPlan(NewPoint("write", 500, SameQP, Options{ProbePriority: 3})))
	if wrong > 0 {
		t.Errorf("%d operations with another priority", wrong)
	}
}

// Slices and their number are as asked for, and every message that is begun is ended.
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
	r := workloadtest.Results(t, enginetest.WithFault(f), plan)[0]
	if h := Of(&r); !r.Verified || h.AppSliceBytes != slice || h.AppWindow != window ||
		h.BulkLoadedBytesPerSecond <= 0 {
		t.Errorf("result %+v, hol %+v", r, h)
	}
	if most != window || bytes%size != 0 || messages == 0 {
		t.Errorf("at most %d outstanding, want %d; %d bytes, want whole messages of %d", most, window, bytes, size)
	}
}

// A bulk message that is lost, doubled, exchanged or changed is found long before the end. A write is lost without a
// trace where nothing compares its slot, so all passes are compared here; sends need no more.
func TestBulkIsNumbered(t *testing.T) {
	const size = 20_000
	for what, bend := range map[string]func(op *transports.Op, mem []byte){
		"nothing":              func(*transports.Op, []byte) {},
		"another in its place": func(op *transports.Op, _ []byte) { op.Local -= engine.ShiftStep },
		"changed":              func(op *transports.Op, mem []byte) { mem[op.Local] ^= 4 },
		"lost": func(op *transports.Op, _ []byte) {
			if op.Kind == transports.KindWrite {
				op.Len = 0
			} else {
				op.Local -= 3 * engine.ShiftStep
			}
		},
	} {
		for _, pt := range holPoints(size) {
			n := 0
			f := enginetest.Changing(func(s transports.Session, op *transports.Op) {
				if op.Len >= 4000 && op.Kind != transports.KindRecv {
					if n++; n == 40 {
						bend(op, s.Local())
					}
				}
			})
			o := Options{BulkDepth: 4}
			if pt.Variant == AppSlicing {
				o.AppSlice, o.AppWindow = 4096, 3
			}
			plan := enginetest.QuickPlan(with(o, pt)...)
			plan.Iterations = 200
			plan.VerifyAll = pt.Op == "write"
			_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
			if workloadtest.Found(t, what, err); n < 40 {
				t.Errorf("%s, %s %s: ended after %d bulk messages", what, pt.Op, pt.Variant, n)
			}
		}
	}
}

func TestHeadOfLinePlansAreChecked(t *testing.T) {
	bent := func(o Options) func(*engine.Plan) {
		return func(p *engine.Plan) { with(o, p.Points...) }
	}
	tr, _ := enginetest.MemEnds(t)
	good := NewPoint("write", 1000, SameQP, Options{})
	workloadtest.Refused(t, tr.Caps(), shape, good, map[string]func(*engine.Plan){
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
	})
}

func TestProbesOneAtATime(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("write", 5000, SameQP,
		Options{ProbeInterval: 2 * time.Millisecond, ProbeOne: true}))
	plan.Iterations = 20
	near, far := enginetest.Pair(t, enginetest.MemEnds, plan, shape, sides)
	d := near.Side.(*client)
	d.parts = parts{probes: true}
	out := enginetest.Once(t, near, far, 1, engine.Limits{Ops: 20})
	if d.pace != nil || out.Unsent != 0 || out.Rec.Count() != 20 || out.Window < 38*time.Millisecond {
		t.Errorf("%d probes in %v, %d unsent; want 20 in 38 ms at least and none due", out.Rec.Count(), out.Window,
			out.Unsent)
	}
}

func TestProbesOfCallsKeepTheirInterval(t *testing.T) {
	const probes, interval = 10, 3 * time.Millisecond
	plan := enginetest.QuickPlan(NewPoint("call", 1000, SameQP,
		Options{BulkDepth: 1, ProbeInterval: interval, ProbeOne: true}))
	plan.Iterations, plan.WarmupIterations = probes, 1
	r := workloadtest.Results(t, enginetest.CarriersUnderTest()["bufconn"], plan)[0]
	if least := (probes - 1) * interval; Of(&r).ProbeLoaded.Count != probes || time.Duration(r.DurationNs) < least {
		t.Errorf("%d probes in %v, want %d in %v at least", Of(&r).ProbeLoaded.Count,
			time.Duration(r.DurationNs), probes, least)
	}
}

// Probes at an interval that the path does not sustain are counted as due, and the point says that it is saturated.
func TestSaturatedProbesOfCallsSaySo(t *testing.T) {
	plan := enginetest.QuickPlan(NewPoint("call", 20_000, SameQP,
		Options{BulkDepth: 2, ProbeInterval: 2 * time.Microsecond}))
	plan.Iterations, plan.Duration = 0, 100*time.Millisecond
	r := workloadtest.Results(t, enginetest.CarriersUnderTest()["bufconn"], plan)[0]
	if h := Of(&r); h.LoadedLoop == nil || !h.LoadedLoop.Saturated || h.LoadedLoop.Due < 49_000 ||
		h.ProbeLoaded.Unfinished == 0 {
		t.Errorf("loop %+v of %d probes, %d unfinished; want 50000 due in 100 ms, and saturated", h.LoadedLoop,
			h.ProbeLoaded.Count, h.ProbeLoaded.Unfinished)
	}
}

func TestHeadOfLineByCallsFindsChangedBytes(t *testing.T) {
	for method, want := range map[uint8]string{methodProbe: "answer to a probe: byte 3",
		methodBulk: "answer to a bulk call: byte 3"} {
		fault := enginetest.CallFault{Serve: func(_ int64, s *transports.Served,
			answer func(*transports.Served) error) error {
			err := answer(s)
			if err == nil && s.Method == method {
				s.Response = enginetest.Flipped(s.Response, 3, 0x20)
			}
			return err
		}}
		plan := enginetest.QuickPlan(NewPoint("call", 5000, SameQP, Options{BulkDepth: 2}))
		plan.Iterations = 20
		workloadtest.Corrupts(t, want, fault.Ends(enginetest.CarriersUnderTest()["fused mem"]), plan, want)
	}
}

func TestHeadOfLineByCallsRefuses(t *testing.T) {
	short := NewPoint("call", 5000, SameQP, Options{})
	short.Response = 9
	for want, pt := range map[string]engine.Point{"answer of 8 bytes": short,
		"app-slicing is of write": NewPoint("call", 5000, AppSlicing, Options{}),
		"probe size 64":           NewPoint("call", 64, SameQP, Options{})} {
		if err := check(pt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
