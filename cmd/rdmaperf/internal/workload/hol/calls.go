package hol

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Head-of-line by calls: one caller of small calls, the probes, beside as many callers of
// large ones as bulk messages are outstanding. A bulk call has a large request and an answer
// of a few bytes; a probe has both of its own size. In the variant same-qp all of them call on
// one connection, in two-qp the probes have one of their own. A probe's priority is that of
// its call, for stacks with priorities.

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

// CallVariants lists those that calls have. A call is not cut by who makes it: its bytes are
// one message for the server.
func CallVariants() []string { return []string{SameQP, TwoQP, Device} }

// checkCalls is what points of calls have to be.
func checkCalls(p engine.Point) error {
	switch {
	case p.Op != transports.KindCall.String():
		return errors.New("the operation is call")
	case p.Variant == AppSlicing:
		return errors.New("variant app-slicing is of write: a call is one message for the server")
	case !slices.Contains(CallVariants(), p.Variant):
		return fmt.Errorf("variant %q: want one of %v", p.Variant, CallVariants())
	case p.Call != engine.CallUnary || p.Response != bulkAnswer:
		return errors.New("bulk calls are unary, with an answer of 8 bytes")
	case p.QPs != 0 || p.Outstanding != 0:
		return errors.New("its connections are those of the variant, and its outstanding calls the bulk depth")
	}
	return validateOptions(p)
}

// callShape is that of a point of calls, and what they may be.
func callShape(s *engine.Setup) (*engine.Shape, transports.CallConfig, error) {
	if err := checkCalls(s.Point); err != nil {
		return nil, transports.CallConfig{}, engine.Refused(err)
	}
	sh, err := drive.CallShape(s, 1)
	if err != nil {
		return nil, transports.CallConfig{}, err
	}
	sh.QPs, sh.Depth = connections(sh.Variant), setUp(sh).BulkDepth
	sh.Layout.Window = (sh.Size + sh.Response) * sh.Depth
	cfg := drive.CallConfig(sh, 1)
	cfg.MaxResponse = max(setUp(sh).ProbeSize, sh.Response)
	cfg.Callers++ // the probes'
	return sh, cfg, nil
}

// connections is how many QPs, or connections of calls, a variant has.
func connections(variant string) int {
	if variant == TwoQP || variant == Device {
		return 2
	}
	return 1
}

// byCalls measures the probes alone, the bulk alone, and both.
func byCalls(ctx context.Context, r *engine.Run) error {
	sh, cfg, err := callShape(&r.Setup)
	if err != nil {
		return err
	}
	s, of := setUp(sh), callers(sh)
	probes := drive.CallGroup{First: sh.QPs - 1, Conns: 1, Each: 1, New: of(methodProbe)}
	if s.ProbeInterval > 0 && s.ProbeOne {
		probes.Gap = s.ProbeInterval
	} else if s.ProbeInterval > 0 {
		probes.Rate = 1e9 / float64(s.ProbeInterval)
	}
	bulk := drive.CallGroup{Conns: 1, Each: sh.Depth, Untimed: true, New: of(methodBulk)}
	k, err := drive.ConnectCalls(ctx, r, sh, cfg, probes, bulk)
	if err != nil {
		return err
	}
	both := drive.CallPhase{Lead: groupProbes, Beside: groupBulk}
	for again := true; again; again = k.Again(err) {
		f := new(holFigures)
		if err = k.Warmed(ctx, both); err == nil {
			err = f.callsAlone(ctx, k)
		}
		if err == nil {
			err = k.Measure(ctx, reports.SamplesProbeLoaded, both)
		}
		err = k.Resident(ctx, err)
		res := k.Result()
		probeParameters(sh, res.Parameters)
		if k.Out != nil {
			f.complete(k, &res)
		}
		r.Add(res)
	}
	return k.Close(ctx, err)
}

// callsAlone measures the probes alone, then the bulk alone.
func (f *holFigures) callsAlone(ctx context.Context, k *drive.Calls) error {
	o, err := k.Ahead(ctx, "probes alone", engine.GenAlone, reports.SamplesProbeAlone,
		drive.CallPhase{Lead: groupProbes})
	if err != nil {
		return err
	}
	f.probeAlone, f.aloneLoop = o.Rec.Snapshot(), callLoop(k.Measurement, o)
	if o, err = k.Ahead(ctx, "bulk alone", engine.GenBulk, "", drive.CallPhase{Lead: groupBulk}); err != nil {
		return err
	}
	f.bulkAlone = reports.NewThroughput(o.Ops*int64(k.Sh.Size), o.Ops, o.Window).BytesPerSecond
	return nil
}

// serveCalls answers probes and bulk calls.
func serveCalls(ctx context.Context, s *engine.Serve) error {
	sh, cfg, err := callShape(&s.Setup)
	if err != nil {
		return err
	}
	if err := s.HoldShape(sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	svc := &server{sh: sh, fail: fails.Fail}
	if err := svc.Begin(engine.GenWarmup); err != nil {
		return err
	}
	return drive.ServeCalls(ctx, s, sh, cfg, svc, fails)
}

// callLoop says what of the probes that were due was called; nil for a closed loop.
func callLoop(m *engine.Measurement, o *engine.Outcome) *reports.OpenLoop {
	s := setUp(m.Sh)
	if s.ProbeInterval == 0 || s.ProbeOne {
		return nil
	}
	return drive.OpenLoopOf(m, o, 1e9/float64(s.ProbeInterval), false, o.Ops, o.Window)
}

// complete adds to a result what only this workload has. Its operations are those of the bulk.
func (f *holFigures) complete(k *drive.Calls, res *reports.Result) {
	sh, out := k.Sh, k.Out
	bulk, ok := out.Detail.(*drive.CallsBeside)
	if !ok || out.Rec == nil {
		return
	}
	f.probeLoaded, f.loadedLoop = out.Rec.Snapshot(), callLoop(k.Measurement, out)
	res.Operations, res.DurationNs = bulk.Ops, int64(bulk.Window)
	t := reports.NewThroughput(bulk.Ops*int64(sh.Size), bulk.Ops, bulk.Window)
	f.bulkLoaded = t.BytesPerSecond
	res.Latency, res.LatencyService, res.LatencyCorrected, res.Throughput, res.OpenLoop = nil, nil, nil, nil, nil
	f.probes = out.Ops
	res.Detail = detail(sh, f)
	drive.ComparedCalls(k.Measurement, res, bulk.Ops+f.probes,
		bulk.Ops*int64(sh.Size+sh.Response)+2*f.probes*int64(setUp(sh).ProbeSize))
}
