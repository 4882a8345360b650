package hol

import (
	"context"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
	"github.com/rdmaperf/rdmaperf/transports"
)

// holFigures are the two views of alone and loaded. Alone comes first, so that
// what a long queue leaves behind cannot colour it.
type holFigures struct {
	probeAlone, probeLoaded reports.Latency
	bulkAlone, bulkLoaded   float64 // bytes a second
	aloneLoop, loadedLoop   *reports.OpenLoop
	probes                  int64 // beside the bulk
}

// runAlone measures the probes alone, then the bulk alone.
func runAlone(m *engine.Measurement, ctx context.Context) error {
	d := m.Group.Side.(*holClient)
	p := &m.C.Plan
	lim := engine.Limits{Ops: p.Iterations, Dur: p.Duration}
	d.parts, m.Group.Raw = parts{probes: true}, m.C.Raw
	out, _, err := m.Phase(ctx, "probes alone", engine.GenAlone, lim)
	if err != nil {
		return err
	}
	d.figures.probeAlone, d.figures.aloneLoop = out.Rec.Snapshot(), d.probeLoop(m, out)
	if err := m.HandSamples(reports.SamplesProbeAlone, out); err != nil {
		return err
	}
	d.parts = parts{bulk: true}
	if out, _, err = m.Phase(ctx, "bulk alone", engine.GenBulk, lim); err != nil {
		return err
	}
	d.figures.bulkAlone = bulkRate(m, out)
	d.parts = parts{bulk: true, probes: true}
	return nil
}

// keepLoaded takes the figures of the measured phase out of the recorder, which
// the next phase uses again.
func keepLoaded(m *engine.Measurement) {
	d := m.Group.Side.(*holClient)
	d.figures.probeLoaded, d.figures.bulkLoaded = m.Out.Rec.Snapshot(), bulkRate(m, m.Out)
	d.figures.loadedLoop, d.figures.probes = d.probeLoop(m, m.Out), int64(d.echoed)
}

// probeLoop says what of the probes that were due was sent; nil for a closed loop.
func (d *holClient) probeLoop(m *engine.Measurement, out *engine.Outcome) *reports.OpenLoop {
	if d.pace == nil {
		return nil
	}
	took := time.Duration(max(d.answeredAt-out.Begin, 0)) // the bulk's last operations are no probes
	return drive.OpenLoopOf(m, out, 1e9/float64(setUp(m.Sh).ProbeInterval), false, int64(d.echoed), took)
}

func bulkRate(m *engine.Measurement, out *engine.Outcome) float64 {
	return reports.NewThroughput(out.Ops*int64(m.Sh.Size), out.Ops, out.Window).BytesPerSecond
}

// holParameters are the options of the probes and of the slices.
func holParameters(m *engine.Measurement, p map[string]any) {
	m.Sh.Barrier(p)
	p["probe_slots"] = setUp(m.Sh).probeSlots
	probeParameters(m.Sh, p)
}

// probeParameters are those that messages and calls have alike.
func probeParameters(sh *engine.Shape, p map[string]any) {
	s := setUp(sh)
	p["arm"], p["probe_priority"], p["probe_arrivals"] = sh.Arm, s.ProbePriority, engine.ArrivalsConstant
	if s.AppWindow > 0 {
		p["app_slice_bytes"], p["app_window"] = s.AppSlice, s.AppWindow
	}
	if s.ProbeInterval == 0 || s.ProbeOne {
		p["probe_arrivals"] = "closed loop"
	}
}

// holResult completes the result.
func holResult(m *engine.Measurement, res *reports.Result, _ *engine.Outcome) {
	f := &m.Group.Side.(*holClient).figures
	if res.Verification != nil {
		res.Verification.Messages += f.probes // beside those of the bulk
	}
	res.Detail = detail(m.Sh, f)
}

// detail is what the result of a point has of its own.
func detail(sh *engine.Shape, f *holFigures) *holkind.HOL {
	s := setUp(sh)
	h := &holkind.HOL{
		AppSliceBytes: int64(s.AppSlice), AppWindow: s.AppWindow,
		Arm: sh.Arm, BulkSizeBytes: int64(sh.Size), ProbeSizeBytes: int64(s.ProbeSize),
		AloneLoop: f.aloneLoop, LoadedLoop: f.loadedLoop, ProbeAlone: f.probeAlone, ProbeLoaded: f.probeLoaded,
		BulkAloneBytesPerSecond: f.bulkAlone, BulkLoadedBytesPerSecond: f.bulkLoaded,
		Probes: f.probes,
	}
	if s.ProbeOne {
		h.ProbeGapNs = int64(s.ProbeInterval)
	} else {
		h.ProbeIntervalNs = int64(s.ProbeInterval)
	}
	return h
}

// holWarm is what the warm-up does, and holProve the phase behind the measured one.
func holWarm(m *engine.Measurement) {
	m.Group.Side.(*holClient).parts = parts{bulk: true, probes: true}
}
func holProve(m *engine.Measurement) { m.Group.Side.(*holClient).parts = parts{bulk: true} }

// holLimits holds the deeper of both queues against the transport's.
func holLimits(_ *engine.Plan, pt engine.Point, caps transports.Caps) error {
	o, err := optionsOf(pt)
	if err != nil {
		return err
	}
	k, _ := transports.ParseKind(pt.Op)
	limit := engine.MaxUserDepth(caps)
	if limit > 0 && pt.Arm == ArmAppSlicing && o.AppWindow+probeSlots(k) > limit {
		return fmt.Errorf("application window %d with its probes is above the limit of %d", o.AppWindow, limit)
	}
	if limit > 0 && holDepth(o, k) > limit {
		return fmt.Errorf("bulk depth %d with its receives is above the limit of %d", o.BulkDepth, limit)
	}
	return nil
}

// holDepth is the deeper of both queues.
func holDepth(o Options, k transports.Kind) int {
	n := o.BulkDepth + 2*probeSlots(k) + holSlack
	if k == transports.KindSend {
		n += o.BulkDepth / 2
	}
	return n
}
