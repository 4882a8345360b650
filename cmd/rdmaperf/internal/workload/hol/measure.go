package hol

import (
	"context"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	holresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol/results"
	"github.com/rdmaperf/rdmaperf/reports"
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

// Client measures one point: the probes alone, the bulk alone, and both.
func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return byCalls(ctx, r)
	}
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	var d *holClient
	m, err := r.Connect(ctx, sh, func(c *engine.Group) (engine.Side, error) {
		var err error
		d, err = newHOLClient(c)
		return d, err
	})
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		err = d.slice(ctx, m)
		r.Add(d.result(m))
	}
	return m.Close(ctx, err)
}

// slice measures the probes alone, the bulk alone, and both.
func (d *holClient) slice(ctx context.Context, m *engine.Measurement) error {
	both := parts{bulk: true, probes: true}
	d.parts, d.figures = both, holFigures{}
	err := m.Warmed(ctx)
	if err == nil {
		err = d.alone(ctx, m)
	}
	if err == nil {
		d.parts = both
		err = m.Measure(ctx, reports.SamplesProbeLoaded)
	}
	if m.Out != nil && m.Out.Rec != nil {
		d.figures.probeLoaded, d.figures.bulkLoaded = m.Out.Rec.Snapshot(), bulkRate(m, m.Out)
		d.figures.loadedLoop, d.figures.probes = d.probeLoop(m, m.Out), int64(d.echoed)
	}
	if err == nil {
		d.parts = parts{bulk: true}
		err = m.Prove(ctx)
	}
	return err
}

// result is that of a slice.
func (d *holClient) result(m *engine.Measurement) reports.Result {
	sh, res := m.Sh, m.Result()
	res.RoundTrip = reports.RoundTripFull
	sh.Barrier(res.Parameters)
	res.Parameters["probe_slots"] = setUp(sh).probeSlots
	probeParameters(sh, res.Parameters)
	if m.Out != nil {
		if res.Verification != nil {
			res.Verification.Messages += d.figures.probes // beside those of the bulk
		}
		res.Detail = detail(sh, &d.figures)
	}
	return res
}

// Server answers probes and takes bulk.
func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return serveCalls(ctx, s)
	}
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, newHOLServer)
}

// alone measures the probes alone, then the bulk alone.
func (d *holClient) alone(ctx context.Context, m *engine.Measurement) error {
	d.parts, m.Group.Raw = parts{probes: true}, m.Raw()
	out, _, err := m.Phase(ctx, "probes alone", engine.GenAlone, m.Window())
	if err != nil {
		return err
	}
	d.figures.probeAlone, d.figures.aloneLoop = out.Rec.Snapshot(), d.probeLoop(m, out)
	if err := m.HandSamples(reports.SamplesProbeAlone, out); err != nil {
		return err
	}
	d.parts = parts{bulk: true}
	if out, _, err = m.Phase(ctx, "bulk alone", engine.GenBulk, m.Window()); err != nil {
		return err
	}
	d.figures.bulkAlone = bulkRate(m, out)
	return nil
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

// probeParameters are those that messages and calls have alike.
func probeParameters(sh *engine.Shape, p map[string]any) {
	s := setUp(sh)
	p["arm"], p["probe_priority"], p["probe_arrivals"] = sh.Variant, s.ProbePriority, engine.ArrivalsConstant
	if s.AppWindow > 0 {
		p["app_slice_bytes"], p["app_window"] = s.AppSlice, s.AppWindow
	}
	if s.ProbeInterval == 0 || s.ProbeOne {
		p["probe_arrivals"] = "closed loop"
	}
}

// detail is what the result of a point has of its own.
func detail(sh *engine.Shape, f *holFigures) *holresults.HOL {
	s := setUp(sh)
	h := &holresults.HOL{
		AppSliceBytes: int64(s.AppSlice), AppWindow: s.AppWindow,
		Arm: sh.Variant, BulkSizeBytes: int64(sh.Size), ProbeSizeBytes: int64(s.ProbeSize),
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

// holDepth is the deeper of both queues.
func holDepth(o Options, k transports.Kind) int {
	n := o.BulkDepth + 2*probeSlots(k) + holSlack
	if k == transports.KindSend {
		n += o.BulkDepth / 2
	}
	return n
}
