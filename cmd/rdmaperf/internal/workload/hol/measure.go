package hol

import (
	"context"
	"errors"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func (*Workload) Client(ctx context.Context, r *engine.Run) error {
	if r.Point.Call != "" {
		return byCalls(ctx, r)
	}
	sh, err := shape(&r.Setup)
	if err != nil {
		return err
	}
	var d *client
	m, err := r.Connect(ctx, sh, func(c *engine.Group) (side engine.Side, err error) {
		d, err = newClient(c)
		return d, err
	})
	if err != nil {
		return err
	}
	for again := true; again; again = m.Again(err) {
		err = d.slice(ctx, m)
		res := m.Result()
		res.RoundTrip = reports.RoundTripFull
		sh.Barrier(res.Parameters)
		res.Parameters["probe_slots"] = d.set.probeSlots
		probeParameters(sh, res.Parameters)
		if m.Out != nil {
			if res.Verification != nil {
				res.Verification.Messages += d.found.Probes // beside those of the bulk
			}
			res.Detail = d.found
		}
		r.Add(res)
	}
	return m.Close(ctx, err)
}

func (d *client) slice(ctx context.Context, m *engine.Measurement) error {
	both := parts{bulk: true, probes: true}
	d.parts, d.found = both, newHOL(m.Sh)
	err := m.Warmed(ctx)
	if err == nil {
		err = d.alone(ctx, m)
	}
	if err == nil {
		d.parts = both
		err = m.Measure(ctx, reports.SamplesProbeLoaded)
	}
	if m.Out != nil && m.Out.Rec != nil {
		d.found.ProbeLoaded, d.found.LoadedLoop = m.Out.Rec.Snapshot(), d.probeLoop(m, m.Out)
		d.found.BulkLoadedBytesPerSecond, d.found.Probes = bulkRate(m.Sh, m.Out.Ops, m.Out.Window), int64(d.echoed)
	}
	if err == nil {
		d.parts = parts{bulk: true}
		err = m.Prove(ctx)
	}
	return err
}

func (*Workload) Server(ctx context.Context, s *engine.Serve) error {
	if s.Point.Call != "" {
		return serveCalls(ctx, s)
	}
	sh, err := shape(&s.Setup)
	if err != nil {
		return err
	}
	return s.Sessions(ctx, sh, newTarget)
}

func (d *client) alone(ctx context.Context, m *engine.Measurement) error {
	d.parts, m.Group.Raw = parts{probes: true}, m.Raw()
	out, _, err := m.Phase(ctx, "probes alone", engine.GenAlone, m.Window())
	if err != nil {
		return err
	}
	d.found.ProbeAlone, d.found.AloneLoop = out.Rec.Snapshot(), d.probeLoop(m, out)
	if err := m.HandSamples(reports.SamplesProbeAlone, out); err != nil {
		return err
	}
	d.parts = parts{bulk: true}
	if out, _, err = m.Phase(ctx, "bulk alone", engine.GenBulk, m.Window()); err != nil {
		return err
	}
	d.found.BulkAloneBytesPerSecond = bulkRate(m.Sh, out.Ops, out.Window)
	return nil
}

func (d *client) probeLoop(m *engine.Measurement, out *engine.Outcome) *reports.OpenLoop {
	took := time.Duration(max(d.answeredAt-out.Begin, 0)) // the bulk's last operations are no probes
	return openLoop(m, out, int64(d.echoed), took)
}

// openLoop is of the probes that were due; nil for a closed loop.
func openLoop(m *engine.Measurement, out *engine.Outcome, probes int64, took time.Duration) *reports.OpenLoop {
	s := setUp(m.Sh)
	if s.ProbeInterval == 0 || s.ProbeOne {
		return nil
	}
	return drive.OpenLoopOf(m, out, 1e9/float64(s.ProbeInterval), false, probes, took)
}

func bulkRate(sh *engine.Shape, ops int64, window time.Duration) float64 {
	return reports.NewThroughput(ops*int64(sh.Size), ops, window).BytesPerSecond
}

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

// newHOL is what is known before anything is measured. Alone comes first, so that no long queue colours it.
func newHOL(sh *engine.Shape) *HOL {
	s := setUp(sh)
	h := &HOL{Arm: sh.Variant, BulkSizeBytes: int64(sh.Size), ProbeSizeBytes: int64(s.ProbeSize),
		AppSliceBytes: int64(s.AppSlice), AppWindow: s.AppWindow}
	if s.ProbeOne {
		h.ProbeGapNs = int64(s.ProbeInterval)
	} else {
		h.ProbeIntervalNs = int64(s.ProbeInterval)
	}
	return h
}

// setup is what both sides keep with a shape. Slices are 0 in other variants.
type setup struct {
	Options
	probeSlots int // probes under way at once
}

// setUp is that of a shape, whose options were checked.
func setUp(sh *engine.Shape) *setup {
	if s, ok := sh.Private.(*setup); ok {
		return s
	}
	o, _ := optionsOf(sh.Point)
	if sh.Variant != AppSlicing {
		o.AppSlice, o.AppWindow = 0, 0
	}
	s := &setup{o, probeSlots(sh.Kind())}
	sh.Private = s
	return s
}

const (
	// slack is the receives for barriers and credits: below 6 are under way.
	slack = 8
	// probePattern is above every number of a bulk slot.
	probePattern = engine.MaxDepth
)

// Slots by which send-side completions differ. Bulk has the number of operations that it completes, 1.
const (
	slotProbe = iota + 2
	slotBarrier
	slotCompare
)

func shape(s *engine.Setup) (*engine.Shape, error) {
	if err := check(s.Point); err != nil {
		return nil, engine.Refused(err)
	}
	if s.Plan.Polling == engine.PollingEvent {
		return nil, engine.Refused(errors.New("the head-of-line workload paces and watches two things at once, so it " +
			"needs busy polling"))
	}
	sh, err := s.NewShape()
	if err != nil {
		return nil, err
	}
	own := setUp(sh)
	sh.Threads, sh.QPs, sh.Depth, sh.Polling = 1, connections(sh.Variant), own.BulkDepth, engine.PollingBusy
	sh.Slots = max(1, min(sh.Depth, engine.SlotBudget/sh.Stride()))
	sh.RecvDepth = receives(sh)
	sh.Arrives(s.Caps)
	off := compareTx(sh) + engine.SlotAlign
	end := off + sh.RecvDepth*recvStride(sh)
	if sh.Kind() == transports.KindWrite {
		end += sh.Slots * sh.Stride()
	}
	sh.Layout = engine.Layout{RxOff: off, DataEnd: end, Window: end}
	sh.Config = sh.SessionConfig()
	sh.Config.SendDepth = max(sh.Depth, own.AppWindow) + own.probeSlots + engine.CtlSlots
	return sh, nil
}

// probeSlots are under way at once; more wait, which is measured. Beside sends every receive has room for bulk.
func probeSlots(k transports.Kind) int {
	if k == transports.KindSend {
		return 16
	}
	return 128
}

// receives is how many are posted: the client may have an echo, and send again, before that send is complete here.
func receives(sh *engine.Shape) int {
	n := 2*setUp(sh).probeSlots + slack
	if sh.Kind() == transports.KindSend {
		n += creditRoom(sh)
	}
	return n
}

func creditEvery(sh *engine.Shape) int { return max(1, sh.Depth/2) }
func creditRoom(sh *engine.Shape) int  { return sh.Depth + creditEvery(sh) }

// Layout: bulk's source | probeTx(0) … | compareTx | RxOff: slots of bulk writes | recvAt(0) …

func probeStride(sh *engine.Shape) int {
	return (setUp(sh).ProbeSize + engine.SlotAlign - 1) &^ (engine.SlotAlign - 1)
}
func probeTx(sh *engine.Shape, i int) int { return drive.SourceSize(sh.Size) + i*probeStride(sh) }
func compareTx(sh *engine.Shape) int      { return probeTx(sh, setUp(sh).probeSlots) }

// compareSize is the length of what asks to compare a pass of writes, whose first number it has. No probe is as long.
func compareSize(sh *engine.Shape) int {
	if setUp(sh).ProbeSize == 8 {
		return 9
	}
	return 8
}

func recvStride(sh *engine.Shape) int {
	if sh.Kind() == transports.KindSend {
		return sh.Stride()
	}
	return probeStride(sh)
}

func recvAt(sh *engine.Shape, i int) int {
	at := sh.RxOff()
	if sh.Kind() == transports.KindWrite {
		at += sh.Slots * sh.Stride()
	}
	return at + i*recvStride(sh)
}

func receivesOf(sh *engine.Shape) []transports.Op {
	recvs := make([]transports.Op, sh.RecvDepth)
	for i := range recvs {
		recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(recvAt(sh, i)),
			Len: uint32(recvStride(sh)), Slot: uint32(i)}
	}
	return recvs
}

func probeFlags(sh *engine.Shape) transports.OpFlags {
	if setUp(sh).ProbeSize <= sh.Inline {
		return transports.Inline
	}
	return 0
}

func queueDepth(o Options, k transports.Kind) int {
	n := o.BulkDepth + 2*probeSlots(k) + slack
	if k == transports.KindSend {
		n += o.BulkDepth / 2
	}
	return n
}
