package paramserver

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

// tiny is a model whose tensors have sizes that are no round numbers.
const tiny = "testdata/tiny.csv"

const tinyBytes = 4 * (700 + 3 + 5000 + 1 + 20_001)

func tinyModel() *Model {
	m, err := LoadModel(tiny)
	if err != nil {
		panic(err)
	}
	return m
}

func trainPoint(arm string, ratio float64) engine.Point {
	pt, err := NewPoint(tinyModel(), tiny, arm, 4, ratio)
	if err != nil {
		panic(err)
	}
	return pt
}

var trainers = [2]engine.NewSide{func(c *engine.Group) (engine.Side, error) {
	return newTrainer(c, tinyModel(), 4, levels(c.Sh, c.Caps)), nil
}, newParameters}

var only = enginetest.Only(shape)

func trainPlan(points ...engine.Point) engine.Plan {
	plan := enginetest.QuickPlan(points...)
	plan.Iterations = 6
	return plan
}

// Iterations are exactly counted, bytes in place on both sides, and computation the same for the same ratio.
func TestTrainingIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		t.Run(name, func(t *testing.T) {
			plan := trainPlan(trainPoint(ArmFIFO, 0), trainPoint(ArmPriority, 0), trainPoint(ArmFIFO, 1.5),
				trainPoint(ArmPriority, 1.5))
			plan.WarmupIterations = 2
			results := workloadtest.Results(t, e, plan)
			for i, r := range results {
				pt, ps := plan.Points[i], Of(&r)
				if ps == nil || r.Operations != 6 || !r.Verified || r.Errors != 0 || r.Latency != nil ||
					r.SizeBytes != tinyBytes || r.QPs != 1 {
					t.Fatalf("%v: %+v", pt, r)
				}
				if ps.Iteration.Count != 6 || ps.Arm != pt.Variant || ps.Tensors != 5 || ps.Parameters != tinyBytes/4 ||
					ps.Levels != 1 || ps.CommunicationNs <= 0 {
					t.Errorf("%v: %+v", pt, ps)
				}
				if first := Of(&results[0]); ps.CommunicationNs != first.CommunicationNs {
					t.Errorf("%v: communication of %v, but %v before", pt, ps.CommunicationNs, first.CommunicationNs)
				}
				if want := ps.CommunicationNs * []float64{0, 0, 1.5, 1.5}[i]; ps.ComputeNs < want-1 ||
					ps.ComputeNs > want || ps.IdealNs != max(ps.ComputeNs, ps.CommunicationNs) {
					t.Errorf("%v: computation of %v, ideal %v, want %v", pt, ps.ComputeNs, ps.IdealNs, want)
				}
				// The shares of the tensors are rounded down, each twice an iteration.
				if (ps.Overlap != nil) != ([]float64{0, 0, 1.5, 1.5}[i] > 0) || ps.Iteration.Min < ps.ComputeNs-10 ||
					!(ps.MeanLow <= ps.Iteration.Mean && ps.Iteration.Mean <= ps.MeanHigh) {
					t.Errorf("%v: overlap %v, %+v", pt, ps.Overlap, ps)
				}
			}
		})
	}
}

type threeLevels struct{ *enginetest.Fault }

func (l threeLevels) Caps() transports.Caps {
	c := l.Fault.Transport.Caps()
	c.Priorities = 3
	return c
}

// Each push, back to front, has its pull right behind it at its priority; what is needed first is most urgent.
func TestTrainingOrderAndPriorities(t *testing.T) {
	for arm, want := range map[string][]uint8{ArmFIFO: {0, 0, 0, 0, 0}, ArmPriority: {2, 2, 1, 1, 0}} {
		t.Run(arm, func(t *testing.T) {
			next, pushed := 4, false
			f := &enginetest.Fault{}
			f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
				for _, op := range ops {
					if op.Kind == transports.KindRecv {
						continue
					}
					kind := transports.KindWrite
					if pushed {
						kind = transports.KindRead
					}
					if int(op.Slot) != next || op.Kind != kind || op.Priority != want[next] {
						t.Errorf("%v of tensor %d at priority %d, want %v of %d at %d", op.Kind, op.Slot, op.Priority,
							kind, next, want[next])
					}
					if pushed = !pushed; !pushed {
						next = (next + 4) % 5
					}
				}
				return s.Post(ops)
			}
			e := func(t testing.TB) (transports.Stack, transports.Stack) {
				client, server := enginetest.SessionEnds(t, enginetest.MemEnds)
				f.Transport = client
				return threeLevels{f}, server
			}
			client, server := enginetest.Pair(t, e, trainPlan(trainPoint(arm, 0)), only, trainers)
			client.Side.(*trainer).priority = arm == ArmPriority
			enginetest.Once(t, client, server, 1, engine.Limits{Ops: 4})
		})
	}
}

// An iteration takes its computation at least, and waits for the tensor that is back last.
func TestTrainingWaits(t *testing.T) {
	const compute, late = 3 * time.Millisecond, 8 * time.Millisecond
	f := &enginetest.Fault{}
	var since time.Time
	var kept []transports.Done
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		if len(kept) > 0 && time.Since(since) > late {
			n := copy(dst, kept)
			kept = kept[n:]
			return n, nil
		}
		n, err := s.Poll(dst)
		out := dst[:0]
		for _, d := range dst[:n] {
			if d.Kind == transports.KindRead && d.Slot == 0 {
				kept, since = append(kept, d), time.Now()
				continue
			}
			out = append(out, d)
		}
		return len(out), err
	}
	client, server := enginetest.Pair(t, enginetest.WithFault(f), trainPlan(trainPoint(ArmFIFO, 0)), only, trainers)
	client.Side.(*trainer).compute = int64(compute)
	out := enginetest.Once(t, client, server, 1, engine.Limits{Ops: 3})
	did, _ := out.Detail.(rounds)
	times := did.times
	if len(times) != 3 || out.Ops != 3 {
		t.Fatalf("%d iterations, %d times, want 3", out.Ops, len(times))
	}
	for _, ns := range times {
		if ns < float64(compute+late)-100 {
			t.Errorf("an iteration of %v, want %v and %v at least", time.Duration(ns), compute, late)
		}
	}
}

func TestTrainingAllocatesNothing(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds, trainPlan(trainPoint(ArmFIFO, 0)), only, trainers)
	enginetest.AllocatesNothing(t, client, server, 500)
}

// A tensor that is lost or exchanged, out or back, is found when it is back; results count those looked at.
func TestTensorsAreNumbered(t *testing.T) {
	const bad = 60
	for what, bend := range map[string]func(op *transports.Op){
		"nothing": func(*transports.Op) {},
		"lost push": func(op *transports.Op) {
			if op.Kind == transports.KindWrite {
				op.Len = 0
			}
		},
		"push of the iteration before": func(op *transports.Op) {
			if op.Kind == transports.KindWrite {
				op.Local -= engine.ShiftStep
			}
		},
		"pull from elsewhere": func(op *transports.Op) {
			if op.Kind == transports.KindRead {
				op.Remote++
			}
		},
	} {
		for tensor := range uint32(5) {
			n := 0
			f := enginetest.Changing(func(_ transports.Session, op *transports.Op) {
				if n++; n > bad && n <= bad+10 && op.Slot == tensor { // once, of each kind
					bend(op)
				}
			})
			plan := trainPlan(trainPoint(ArmFIFO, 0))
			plan.Iterations, plan.VerifyAll = 40, what == "nothing"
			r, err := enginetest.First(enginetest.RunPoints(t, enginetest.WithFault(f), plan))
			if workloadtest.Found(t, what, err); n < bad {
				t.Errorf("%s of tensor %d: ended after %d", what, tensor, n)
			}
			// One more iteration than is measured, all of each pulled, and what both sides hold at the end.
			if v := r.Verification; what == "nothing" && (v == nil || v.Messages != 41*5 || v.Numbers != 41*5 ||
				v.Whole != 41*5 || v.Bytes != (41+2)*tinyBytes) {
				t.Errorf("%+v, want all of 41 iterations", v)
			}
		}
	}
}

func TestTrainingEndsInTime(t *testing.T) {
	enginetest.Stalls(t, enginetest.Losing(func(d transports.Done) bool { return d.Kind == transports.KindRead }),
		trainPlan(trainPoint(ArmFIFO, 0)))
}

func TestTrainingPlansAreChecked(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	workloadtest.Refused(t, tr.Caps(), only, trainPoint(ArmFIFO, 1), map[string]func(*engine.Plan){
		"unknown arm":    func(p *engine.Plan) { p.Points[0].Variant = hol.SameQP },
		"no arm":         func(p *engine.Plan) { p.Points[0].Variant = "" },
		"operation":      func(p *engine.Plan) { p.Points[0].Op = "read" },
		"negative ratio": func(p *engine.Plan) { p.Points[0] = trainPoint(ArmFIFO, -1) },
		"no model": func(p *engine.Plan) {
			p.Points[0].Options = engine.PackOptions(Training{Tensors: 5, TensorBytes: 4, ComputeRatio: 1})
		},
		"QPs":           func(p *engine.Plan) { p.Points[0].QPs = 2 },
		"event polling": func(p *engine.Plan) { p.Polling = engine.PollingEvent },
	})
	for what, bend := range map[string]func(*engine.Plan){
		"unknown model": func(p *engine.Plan) {
			p.Points[0].Options = engine.PackOptions(Training{"tiny", "none.csv", 5, 4, 1})
		},
		"other size": func(p *engine.Plan) { p.Points[0].Size++ },
	} {
		plan := trainPlan(trainPoint(ArmFIFO, 1))
		bend(&plan)
		if _, err := enginetest.RunPoints(t, enginetest.MemEnds, plan); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
	plan := trainPlan(trainPoint(ArmPriority, 1))
	caps := tr.Caps()
	caps.Kinds &^= transports.Kinds(transports.KindRead)
	if err := engine.Check(&plan, "test", caps); reports.Code(err) != reports.ExitNotRun {
		t.Errorf("a transport without reads: %v, want not run", err)
	}
	caps = tr.Caps()
	caps.MaxMsg = 80_003
	if err := engine.Check(&plan, "test", caps); reports.Code(err) != reports.ExitUsage {
		t.Errorf("a tensor above the longest message: %v, want a usage error", err)
	}
	caps.MaxMsg++
	if err := engine.Check(&plan, "test", caps); err != nil {
		t.Errorf("tensors of the longest message: %v", err)
	}
	enginetest.Works(t, addr, tr)
}
