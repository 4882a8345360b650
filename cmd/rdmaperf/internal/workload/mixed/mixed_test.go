package mixed

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func TestMain(m *testing.M) { enginetest.Main(m, workload.Table(new(Workload))) }

var only = enginetest.Only(shape)

func pointOf(o Options) engine.Point {
	return engine.Point{Workload: Name, Op: pointOp, Size: o.largest(), Options: engine.PackOptions(o)}
}

func TestMixedIsCompleteAndExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for what, bend := range map[string]func(p *engine.Plan, o *Options){
			"operations":  func(*engine.Plan, *Options) {},
			"duration":    func(p *engine.Plan, _ *Options) { p.Iterations, p.Duration = 0, 20*time.Millisecond },
			"flushed":     func(_ *engine.Plan, o *Options) { o.Flush = true },
			"whole":       func(p *engine.Plan, _ *Options) { p.VerifyAll = true },
			"reads":       func(_ *engine.Plan, o *Options) { o.ReadPercent = 100 },
			"writes":      func(_ *engine.Plan, o *Options) { o.ReadPercent = 0 },
			"connections": func(p *engine.Plan, _ *Options) { p.QPs, p.Threads = 3, 2 },
			"open loop":   func(p *engine.Plan, _ *Options) { p.Points[0].Rate = 20_000 },
			"odd sizes": func(_ *engine.Plan, o *Options) {
				o.Reads, o.Writes = []Block{{1, 50}, {777, 50}}, []Block{{3, 20}, {65, 80}}
			},
			"events": func(p *engine.Plan, _ *Options) { p.Polling = engine.PollingEvent },
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				o := someOptions(70)
				plan := enginetest.QuickPlan(engine.Point{})
				plan.Depth, plan.WarmupIterations = 4, 10
				bend(&plan, &o)
				rate := plan.Points[0].Rate
				plan.Points[0] = pointOf(o)
				plan.Points[0].Rate = rate
				r := &workloadtest.Results(t, e, plan)[0]
				d := Of(r)
				if d == nil || !r.Verified || r.Errors != 0 || r.Op != op ||
					d.Reads.Operations+d.Writes.Operations != r.Operations {
					t.Fatalf("%+v, %+v", r, d)
				}
				qps := int64(max(plan.QPs, 1))
				if n := 300 * qps; plan.Iterations > 0 && (r.Operations != n ||
					d.Reads.Operations != n*int64(o.ReadPercent)/100) {
					t.Errorf("%d operations, of which %d are reads, want %d and %d %%", r.Operations,
						d.Reads.Operations, n, o.ReadPercent)
				}
				if off := d.Reads.Operations - r.Operations*int64(o.ReadPercent)/100; off < -25*qps || off > 25*qps {
					t.Errorf("%d reads of %d operations, want %d %%", d.Reads.Operations, r.Operations, o.ReadPercent)
				}
				for i, x := range d.sides() {
					sum := int64(0)
					for _, b := range x.Blocks {
						sum += b.Operations
					}
					if sum != x.Operations || (x.Latency == nil) != (x.Operations == 0) || x.Latency != nil &&
						(x.Latency.Count != x.Operations || x.Latency.Min <= 0) {
						t.Errorf("direction %d: %+v, %+v", i, x, x.Latency)
					}
				}
				if v := r.Verification; v == nil || v.Numbers < d.Reads.Operations || plan.VerifyAll &&
					v.Whole < d.Reads.Operations || d.Writes.Operations > 0 && v.Numbers == d.Reads.Operations {
					t.Errorf("compared %+v of %d reads, %d writes", v, d.Reads.Operations, d.Writes.Operations)
				}
				if rate > 0 && (r.OpenLoop == nil || r.LatencyService == nil ||
					r.LatencyService.Count != r.Operations) {
					t.Errorf("open loop %+v, service %+v", r.OpenLoop, r.LatencyService)
				}
			})
		}
	}
}

func TestMixedPostsItsOrder(t *testing.T) {
	o := someOptions(60)
	out, most := 0, 0
	var posted []transports.Op
	f := &enginetest.Fault{}
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		n, err := s.Post(ops)
		posted = append(posted, ops[:n]...)
		out += n
		most = max(most, out)
		return n, err
	}
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst)
		out -= n
		return n, err
	}
	plan := enginetest.QuickPlan(pointOf(o))
	plan.Depth = 3
	workloadtest.Results(t, enginetest.WithFault(f), plan)
	if out != 0 || most != 3 || len(posted) != 301 {
		t.Fatalf("%d posted, %d at once, %d at the end, want 301, 3, 0", len(posted), most, out)
	}
	sh := &engine.Shape{Point: plan.Points[0], Slots: cellsOf(&o), Seed: plan.Seed}
	order := newOrder(&o, sh, engine.GenMeasure, 0)
	for n, p := range posted[:300] {
		op := order.at(uint64(n))
		kind := transports.KindRead
		if op.dir == writes {
			kind = transports.KindWrite
		}
		at := uint64(op.cell*aligned(o.largest()) + op.at)
		if kind == transports.KindWrite {
			at += uint64(sh.Slots * aligned(o.largest()))
		}
		if p.Kind != kind || int(p.Len) != op.size || p.Remote != at || int(p.Slot) != n%3 {
			t.Fatalf("operation %d: %+v, want %v of %+v", n, p, kind, op)
		}
	}
	if last := posted[300]; last.Kind != transports.KindRead || last.Slot != proofSlot {
		t.Errorf("the last one is %+v, want a read that proves arrival", last)
	}
}

func TestMixedFindsDamage(t *testing.T) {
	bend := func(kind transports.Kind, change func(op *transports.Op)) *enginetest.Fault {
		n := 0
		return enginetest.Changing(func(_ transports.Session, op *transports.Op) {
			if op.Kind == kind && op.Slot != proofSlot && op.Len > 1 {
				if n++; n > 20 {
					change(op)
				}
			}
		})
	}
	for what, f := range map[string]*enginetest.Fault{
		"read of another place":  bend(transports.KindRead, func(op *transports.Op) { op.Remote += 8 }),
		"read to another place":  bend(transports.KindRead, func(op *transports.Op) { op.Local++ }),
		"write of other bytes":   bend(transports.KindWrite, func(op *transports.Op) { op.Local++ }),
		"write to another place": bend(transports.KindWrite, func(op *transports.Op) { op.Remote += 64 }),
		"write cut short":        bend(transports.KindWrite, func(op *transports.Op) { op.Len-- }),
		"write lost":             bend(transports.KindWrite, func(op *transports.Op) { op.Len = 0 }),
	} {
		o := someOptions(50)
		o.Writes = []Block{{3000, 100}}
		workloadtest.Corrupts(t, what, enginetest.WithFault(f), enginetest.QuickPlan(pointOf(o)), "")
	}
	// Where each write has the same bytes at the same place, its mark identifies it.
	o := someOptions(50)
	o.Writes, o.Span = []Block{{3000, 100}}, 4096
	plan := enginetest.QuickPlan(pointOf(o))
	plan.Depth = 1
	lost := bend(transports.KindWrite, func(op *transports.Op) { op.Len = 0 })
	workloadtest.Corrupts(t, "the last writes to one place lost", enginetest.WithFault(lost), plan, "")
	plan = enginetest.QuickPlan(pointOf(someOptions(50)))
	enginetest.Stalls(t, enginetest.Losing(func(transports.Done) bool { return true }), plan)
	twice := &enginetest.Fault{Poll: func(s transports.Session, dst []transports.Done) (int, error) {
		n, err := s.Poll(dst[:len(dst)/2])
		return n + copy(dst[n:], dst[:n]), err
	}}
	if _, err := enginetest.RunPoints(t, enginetest.WithFault(twice), plan); !errors.Is(err, errUnasked) {
		t.Errorf("each completion twice: %v, want %v", err, errUnasked)
	}
}

func TestMixedAllocatesNothing(t *testing.T) {
	o := someOptions(70)
	client, server := enginetest.Pair(t, enginetest.MemEnds, enginetest.QuickPlan(pointOf(o)), only, [2]engine.NewSide{
		func(c *engine.Group) (engine.Side, error) { return newClient(c, &o), nil },
		func(c *engine.Group) (engine.Side, error) { return drive.NewExposed(c, true, o.verify), nil }})
	enginetest.AllocatesNothing(t, client, server, 10_000)
}

func TestMixedPlansAreChecked(t *testing.T) {
	for what, bend := range map[string]func(p *engine.Plan, o *Options){
		"operation":      func(p *engine.Plan, _ *Options) { p.Points[0].Op = "send" },
		"size":           func(p *engine.Plan, _ *Options) { p.Points[0].Size = 64 },
		"mix":            func(_ *engine.Plan, o *Options) { o.ReadPercent = 101 },
		"percent":        func(_ *engine.Plan, o *Options) { o.Writes = []Block{{4096, 99}} },
		"no sizes":       func(_ *engine.Plan, o *Options) { o.Writes[0].Size = 0 },
		"span":           func(_ *engine.Plan, o *Options) { o.Span = 4095 },
		"depth":          func(p *engine.Plan, o *Options) { o.Span, p.Depth = 1<<16, 17 },
		"paced by event": func(p *engine.Plan, _ *Options) { p.Points[0].Rate, p.Polling = 100, engine.PollingEvent },
		"no options":     func(p *engine.Plan, _ *Options) { p.Points[0].Options = "" },
		"foreign option": func(p *engine.Plan, _ *Options) { p.Points[0].Options = `{"zone":1}` },
	} {
		o := someOptions(50)
		plan := enginetest.QuickPlan(pointOf(o))
		bend(&plan, &o)
		if plan.Points[0].Options == engine.PackOptions(someOptions(50)) {
			plan.Points[0].Options = engine.PackOptions(o)
		}
		if _, err := enginetest.RunPoints(t, enginetest.MemEnds, plan); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v (exit %d), want a usage error", what, err, reports.Code(err))
		}
	}
}

// What changes on the way is found in what is written, and in what is read, on stacks without a check of their own.
func TestTamperingIsFoundInMixed(t *testing.T) {
	for name, open := range enginetest.Unchecked {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/back %v", name, back), func(t *testing.T) {
				o := someOptions(50)
				const ops = 200
				bytes := ops / 2 * 2970 // written; of reads 1929
				if back {
					bytes = ops / 2 * 1929
				}
				plan := enginetest.QuickPlan(pointOf(o))
				plan.Iterations, plan.WarmupIterations, plan.Depth, plan.VerifyAll, plan.Timeout = ops, 10, 4, true,
					2*time.Second
				workloadtest.Tampered(t, int64(bytes), back, func(p *enginetest.Tamper) error {
					results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
						return p.Sessions(open(t)), open(t)
					}, plan)
					if len(results) > 0 && results[0].Verified {
						t.Error("a run that was changed is verified")
					}
					return err
				}, 0.17, 0.52, 0.88)
			})
		}
	}
}
