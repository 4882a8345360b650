package starvation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

func starvePoint(load float64) engine.Point { return pointAt(Load{High: load, Priority: 1}) }
func pointAt(l Load) engine.Point           { return point(&engine.Plan{}, "write", 3000, l) }

func TestStarvationIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, duration := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(name+"/"+duration.String(), func(t *testing.T) {
				plan := enginetest.QuickPlan(starvePoint(0), starvePoint(50), starvePoint(200))
				plan.Depth, plan.WarmupIterations = 4, 10
				if duration > 0 {
					plan.Iterations, plan.Duration = 0, duration
				}
				for i, r := range workloadtest.Results(t, e, plan) {
					s, load := Of(&r), []float64{0, 50, 200}[i]
					if s == nil || !r.Verified || r.Errors != 0 || s.HighLoadPercent != load ||
						s.CapacityBytesPerSecond <= 0 {
						t.Fatalf("%v: %+v, %+v", plan.Points[i], r, s)
					}
					if r.Operations != s.High.Operations+s.Low.Operations || (load == 0) != (s.High.Operations == 0) &&
						duration == 0 {
						t.Errorf("%v: %d operations, %+v", plan.Points[i], r.Operations, s)
					}
					// A turn posts no more than one of the low class and a queue of the high one.
					if n := r.Operations; duration == 0 && (n < 300 || n > 300+4) {
						t.Errorf("%v: %d operations, want 300", plan.Points[i], n)
					}
				}
			})
		}
	}
}

// The high class has the priority, the low one none, and neither has more outstanding than its depth.
func TestStarvationClasses(t *testing.T) {
	var out, most [2]int
	f := &enginetest.Fault{}
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		n, err := s.Post(ops)
		for _, op := range ops[:n] {
			if op.Kind != transports.KindWrite {
				continue
			}
			if op.Priority != uint8(op.Slot)*5 {
				t.Errorf("priority %d of class %d", op.Priority, op.Slot)
			}
			out[op.Slot]++
			most[op.Slot] = max(most[op.Slot], out[op.Slot])
		}
		return n, err
	}
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		for _, d := range dst[:n] {
			if d.Kind == transports.KindWrite {
				out[d.Slot]--
			}
		}
		return n, err
	}
	plan := enginetest.QuickPlan(pointAt(Load{100, 5}))
	plan.Depth = 3
	workloadtest.Results(t, enginetest.WithFault(f), plan)
	if out != [2]int{} || most[lowClass] == 0 || most[highClass] == 0 || max(most[lowClass], most[highClass]) > 3 {
		t.Errorf("%v outstanding at most, %v at the end, want 1 to 3 and none", most, out)
	}
}

func TestStarvationAllocatesNothing(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds, enginetest.QuickPlan(starvePoint(100)), only,
		[2]engine.NewSide{func(c *engine.Group) (engine.Side, error) {
			return newSources(c, Load{100, 1}), nil
		}, func(c *engine.Group) (engine.Side, error) { return drive.NewExposed(c, false, verifyClasses), nil }})
	d := client.Side.(*sources)
	d.high, d.interval = true, 1000
	enginetest.AllocatesNothing(t, client, server, 10_000)
}

// A changed byte is found in either class, and a lost completion costs the timeout.
func TestStarvationFindsDamage(t *testing.T) {
	for class := range uint32(2) {
		f := enginetest.Changing(func(_ transports.Session, op *transports.Op) {
			if op.Kind == transports.KindWrite && op.Slot == class {
				op.Local++
			}
		})
		workloadtest.Corrupts(t, fmt.Sprint("class ", class), enginetest.WithFault(f),
			enginetest.QuickPlan(starvePoint(100)), "")
	}
	enginetest.Stalls(t, enginetest.Losing(func(transports.Done) bool { return true }),
		enginetest.QuickPlan(starvePoint(100)))
}

var only = enginetest.Only(shape)

func TestStarvationPlansAreChecked(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	workloadtest.Refused(t, tr.Caps(), only, starvePoint(50), map[string]func(*engine.Plan){
		"operation":     func(p *engine.Plan) { p.Points[0].Op = "send" },
		"negative load": func(p *engine.Plan) { p.Points[0] = starvePoint(-1) },
		"load":          func(p *engine.Plan) { p.Points[0] = starvePoint(1e9) },
		"QPs":           func(p *engine.Plan) { p.Points[0].QPs = 2 },
		"event polling": func(p *engine.Plan) { p.Polling = engine.PollingEvent },
	})
	plan := enginetest.QuickPlan(pointAt(Load{50, 8}))
	caps := tr.Caps()
	caps.Priorities = 8
	if err := engine.Check(&plan, "test", caps); reports.Code(err) != reports.ExitUsage {
		t.Errorf("a priority above the limit: %v, want a usage error", err)
	}
	caps.Kinds &^= transports.Kinds(transports.KindRead)
	if err := engine.Check(&plan, "test", caps); reports.Code(err) != reports.ExitNotRun {
		t.Errorf("a transport without reads: %v, want not run", err)
	}
	enginetest.Works(t, addr, tr)
}

func TestMoreThanTheCapacityIsImpossible(t *testing.T) {
	for _, c := range []struct {
		high, low float64
		want      string
	}{{60, 42, ""}, {100, 681.7, "781.7 % of the capacity"}} {
		s := &Starvation{CapacityBytesPerSecond: 100, High: ClassShare{BytesPerSecond: c.high},
			Low: ClassShare{BytesPerSecond: c.low}}
		if got := s.Contradiction(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v and %v: %q, want %q", c.high, c.low, got, c.want)
		}
	}
}

// With all passes compared, a message that is lost, changed or exchanged is found long before the end.
func TestBothClassesAreNumbered(t *testing.T) {
	const bad, ops = 60, 400
	other := uint64(drive.SourceSize(3000))
	for what, bend := range map[string]func(op *transports.Op, mem []byte){
		"nothing":              func(*transports.Op, []byte) {},
		"lost":                 func(op *transports.Op, _ []byte) { op.Len = 0 },
		"changed":              func(op *transports.Op, mem []byte) { mem[op.Local+2000] ^= 4 },
		"another in its place": func(op *transports.Op, _ []byte) { op.Local -= engine.ShiftStep },
		"the other class's": func(op *transports.Op, _ []byte) {
			if op.Local >= other {
				op.Local -= other
			} else {
				op.Local += other
			}
		},
	} {
		for class := range uint32(2) {
			n := 0
			f := enginetest.Changing(func(s transports.Session, op *transports.Op) {
				if op.Kind == transports.KindWrite && op.Slot == class {
					if n++; n == bad {
						bend(op, s.Local())
					}
				}
			})
			plan := enginetest.QuickPlan(starvePoint(200))
			plan.Depth, plan.Iterations, plan.VerifyAll = 4, ops, true
			r, err := enginetest.First(enginetest.RunPoints(t, enginetest.WithFault(f), plan))
			if workloadtest.Found(t, what, err); n < bad {
				t.Errorf("%s, class %d: ended after %d", what, class, n)
			}
			if v := r.Verification; what == "nothing" && (v == nil || v.Whole != v.Messages ||
				v.Numbers != v.Messages || v.Messages < ops || v.Bytes != 3000*v.Messages) {
				t.Errorf("%+v of %d operations, want all", v, ops)
			}
		}
	}
}

// By default one pass in many is compared, and never one twice.
func TestPassesAreSampled(t *testing.T) {
	plan := enginetest.QuickPlan(starvePoint(200))
	plan.Depth, plan.Iterations = 4, 5000
	r := workloadtest.Results(t, enginetest.MemEnds, plan)[0]
	// The first pass of each class, the last, and about 5 of 1250.
	if v := r.Verification; v.Whole < 16 || v.Whole > 100 || v.Whole != v.Numbers || v.Messages < 5000 {
		t.Errorf("%+v of %d", v, r.Operations)
	}
}
