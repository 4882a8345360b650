package starvation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload), new(latency.Workload))) }

func starvePoint(load float64) engine.Point { return pointAt(Load{High: load, Priority: 1}) }

func pointAt(l Load) engine.Point {
	return point(&engine.Plan{}, "write", 3000, l)
}

// Both classes are counted apart and all bytes are in place, by operations and by time.
func TestStarvationIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, duration := range []time.Duration{0, 20 * time.Millisecond} {
			t.Run(name+"/"+duration.String(), func(t *testing.T) {
				plan := enginetest.QuickPlan(starvePoint(0), starvePoint(50), starvePoint(200))
				plan.Depth, plan.WarmupIterations = 4, 10
				if duration > 0 {
					plan.Iterations, plan.Duration = 0, duration
				}
				results, err := enginetest.RunPoints(t, e, plan)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range results {
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

// The high class has the priority, the low one none, and neither has more outstanding
// than its depth.
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
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan); err != nil {
		t.Fatal(err)
	}
	if out != [2]int{} || most[lowClass] == 0 || most[highClass] == 0 || max(most[lowClass], most[highClass]) > 3 {
		t.Errorf("%v outstanding at most, %v at the end, want 1 to 3 and none", most, out)
	}
}

// The loop allocates nothing, however much it posts.
func TestStarvationAllocatesNothing(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds, enginetest.QuickPlan(starvePoint(100)), only,
		[2]engine.NewSide{func(c *engine.Group) (engine.Side, error) {
			return newSources(c, Load{100, 1}), nil
		}, func(c *engine.Group) (engine.Side, error) { return drive.NewExposed(c, false, verifyClasses), nil }})
	client.Side.(*sources).classes = classes{low: true, high: true, interval: 1000}
	enginetest.Once(t, client, server, 1, engine.Limits{Ops: 100})
	release := engine.HoldCollector()
	defer release()
	if out := enginetest.Once(t, client, server, 2, engine.Limits{Ops: 10_000}); out.Ops < 10_000 ||
		out.Usage.Allocations > 100 {
		t.Errorf("%d operations, %d allocations, want 10000 and none of the loop", out.Ops, out.Usage.Allocations)
	}
}

// A changed byte is found in either class, and a lost completion costs the timeout.
func TestStarvationFindsDamage(t *testing.T) {
	for class := range uint32(2) {
		f := &enginetest.Fault{}
		f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
			changed := append([]transports.Op(nil), ops...)
			for i := range changed {
				if changed[i].Kind == transports.KindWrite && changed[i].Slot == class {
					changed[i].Local++
				}
			}
			return s.Post(changed)
		}
		if _, err := enginetest.RunPoints(t, enginetest.WithFault(f),
			enginetest.QuickPlan(starvePoint(100))); reports.Code(err) != reports.ExitCorruption {
			t.Errorf("class %d: error %v, want a corruption", class, err)
		}
	}
	f := &enginetest.Fault{Poll: func(s transports.Session, dst []transports.Done) (int, error) {
		_, err := s.Poll(dst)
		return 0, err
	}}
	plan := enginetest.QuickPlan(starvePoint(100))
	plan.Timeout = time.Second
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan); reports.Code(err) != reports.ExitPeer ||
		!errors.Is(err, engine.ErrStalled) {
		t.Errorf("error %v (exit %d), want no progress and exit 5", err, reports.Code(err))
	}
}

// only is the shape of a point.
func only(s *engine.Setup) (*engine.Shape, error) {
	sh, _, err := shape(s)
	return sh, err
}

// What makes no sense is refused before anything runs.
func TestStarvationPlansAreChecked(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	for what, bend := range map[string]func(*engine.Plan){
		"operation":     func(p *engine.Plan) { p.Points[0].Op = "send" },
		"negative load": func(p *engine.Plan) { p.Points[0] = starvePoint(-1) },
		"load":          func(p *engine.Plan) { p.Points[0] = starvePoint(1e9) },
		"QPs":           func(p *engine.Plan) { p.Points[0].QPs = 2 },
		"event polling": func(p *engine.Plan) { p.Polling = engine.PollingEvent },
	} {
		plan := enginetest.QuickPlan(starvePoint(50))
		if err := enginetest.Refusal(plan, tr.Caps(), only); err != nil {
			t.Fatal(err)
		}
		bend(&plan)
		if err := enginetest.Refusal(plan, tr.Caps(), only); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
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
