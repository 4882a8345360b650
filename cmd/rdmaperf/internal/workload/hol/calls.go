package hol

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Head-of-line by calls: one caller of small calls, the probes, beside as many callers of
// large ones as bulk messages are outstanding. A bulk call has a large request and an answer
// of a few bytes; a probe has both of its own size. In the arm same-qp all of them call on
// one connection, in two-qp the probes have one of their own. A probe's priority is that of
// its call, for stacks that tell them apart.

// bulkAnswer is the answer to a bulk call in bytes, whose payload goes one way.
const bulkAnswer = 8

// Methods of the server.
const (
	methodProbe = iota
	methodBulk
)

// Groups of callers.
const (
	groupProbes = iota
	groupBulk
)

// CallArms lists the arms that calls have. A call is not cut by who makes it: its bytes are
// one message for the server.
func CallArms() []string { return []string{ArmSameQP, ArmTwoQP, ArmDevice} }

// callWork is what is served, and how long messages are.
var callWork = engine.CallWork{
	Serve:   serveCalls,
	Longest: func(sh *engine.Shape) (request, response int) { return sh.Size, max(setUp(sh).ProbeSize, sh.Response) },
	Beside:  1, // the probes'
}

// byCall is the row of head-of-line blocking among calls.
func byCall() *engine.Workload {
	w := drive.CallRow(Name, holkind.Kind, &callWork)
	w.Rated, w.Has = false, engine.Members{Arms: true, Options: true}
	w.Point, w.Describe = validateCalls, armed
	w.Shape, w.Check, w.Limits = callShape, checkCallShape, callLimits
	w.Run, w.Result, w.Samples = runCalls, callResult, reports.SamplesProbeLoaded
	all := w.AllParameters
	w.AllParameters = func(m *engine.Measurement) map[string]any {
		p := all(m)
		probeParameters(m.Sh, p)
		return p
	}
	return w
}

// validateCalls checks what only this workload asks of a point of calls.
func validateCalls(p engine.Point) error {
	switch {
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case p.Arm == ArmAppSlicing:
		return errors.New("arm app-slicing is of write: a call is one message for the server")
	case !slices.Contains(CallArms(), p.Arm):
		return fmt.Errorf("arm %q: want one of %v", p.Arm, CallArms())
	case p.Call != engine.CallUnary || p.Response != bulkAnswer:
		return errors.New("bulk calls are unary, with an answer of 8 bytes")
	case p.QPs != 0 || p.Outstanding != 0:
		return errors.New("its connections are those of the arm, and its calls outstanding the bulk depth")
	}
	return validateOptions(p)
}

// callShape has a goroutine for each bulk call outstanding, and one for the probes.
func callShape(sh *engine.Shape, p *engine.Plan, ab engine.Abilities) {
	drive.CallShape(sh, p, ab)
	sh.QPs = connections(sh.Arm)
	sh.Depth = setUp(sh).BulkDepth
}

// connections is how many QPs, or connections of calls, an arm has.
func connections(arm string) int {
	if arm == ArmTwoQP || arm == ArmDevice {
		return 2
	}
	return 1
}

func checkCallShape(sh *engine.Shape) error {
	switch {
	case sh.Threads != 1 || sh.Slots != 1 || sh.Polling != engine.PollingBusy || sh.QPs != connections(sh.Arm):
		return fmt.Errorf("arm %s on %d connections, %d threads, %d slots, %s polling", sh.Arm, sh.QPs, sh.Threads,
			sh.Slots, sh.Polling)
	case sh.Depth != setUp(sh).BulkDepth:
		return fmt.Errorf("depth %d, want the bulk's of %d", sh.Depth, setUp(sh).BulkDepth)
	}
	return nil
}

func callLimits(p *engine.Plan, pt engine.Point, caps transports.Caps) error {
	if n := connections(pt.Arm); caps.MaxSessions > 0 && n > caps.MaxSessions {
		return fmt.Errorf("%d connections are above the limit of %d", n, caps.MaxSessions)
	}
	return nil
}

// runCalls measures the probes alone, the bulk alone, and both.
func runCalls(m *engine.Measurement, ctx context.Context) error {
	sh, s := m.Sh, setUp(m.Sh)
	of := callers(sh)
	probes := drive.CallGroup{First: sh.QPs - 1, Conns: 1, Each: 1, New: of(methodProbe)}
	if s.ProbeInterval > 0 && s.ProbeOne {
		probes.Gap = s.ProbeInterval
	} else if s.ProbeInterval > 0 {
		probes.Rate = 1e9 / float64(s.ProbeInterval)
	}
	figures := new(holFigures)
	m.C.Remembered[figuresKey{}] = figures
	return drive.RunCallGroups(m, ctx, drive.CallPhases{
		Groups: []drive.CallGroup{groupProbes: probes, groupBulk: {Conns: 1, Each: sh.Depth, Untimed: true,
			New: of(methodBulk)}},
		Before: []drive.NamedCallPhase{
			{CallPhase: drive.CallPhase{Lead: groupProbes}, Name: "probes alone", Generation: engine.GenAlone,
				Samples: reports.SamplesProbeAlone, Keep: func(o *engine.Outcome) {
					figures.probeAlone, figures.aloneLoop = o.Rec.Snapshot(), callLoop(m, o)
				}},
			{CallPhase: drive.CallPhase{Lead: groupBulk}, Name: "bulk alone", Generation: engine.GenBulk,
				Keep: func(o *engine.Outcome) {
					figures.bulkAlone = reports.NewThroughput(o.Ops*int64(sh.Size), o.Ops, o.Window).BytesPerSecond
				}},
		},
		Measured: drive.CallPhase{Lead: groupProbes, Beside: groupBulk},
	})
}

// figuresKey is where a point keeps the figures of the phases ahead of the measured one.
type figuresKey struct{}

// callLoop says what of the probes that were due was called; nil for a closed loop.
func callLoop(m *engine.Measurement, o *engine.Outcome) *reports.OpenLoop {
	s := setUp(m.Sh)
	if s.ProbeInterval == 0 || s.ProbeOne {
		return nil
	}
	return drive.OpenLoopOf(m, o, 1e9/float64(s.ProbeInterval), false, o.Ops, o.Window)
}

// callResult completes the result, whose operations are those of the bulk.
func callResult(m *engine.Measurement, res *reports.Result, out *engine.Outcome) {
	drive.CallFigures(m, res, out)
	bulk, ok := out.Detail.(*drive.CallsBeside)
	if !ok || out.Rec == nil {
		return
	}
	f, _ := m.C.Remembered[figuresKey{}].(*holFigures)
	if f == nil {
		f = new(holFigures)
	}
	f.probeLoaded, f.loadedLoop = out.Rec.Snapshot(), callLoop(m, out)
	res.Operations, res.DurationNs = bulk.Ops, int64(bulk.Window)
	t := reports.NewThroughput(bulk.Ops*int64(m.Sh.Size), bulk.Ops, bulk.Window)
	f.bulkLoaded = t.BytesPerSecond
	res.Latency, res.LatencyService, res.LatencyCorrected, res.Throughput, res.OpenLoop = nil, nil, nil, nil, nil
	f.probes = out.Ops
	res.Detail = detail(m.Sh, f)
	drive.ComparedCalls(m, res, bulk.Ops+f.probes,
		bulk.Ops*int64(m.Sh.Size+m.Sh.Response)+2*f.probes*int64(setUp(m.Sh).ProbeSize))
}
