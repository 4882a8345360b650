package bench

import (
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// holFigures are the two views of alone and loaded. Alone comes first, so that
// what a long queue leaves behind cannot colour it.
type holFigures struct {
	probeAlone, probeLoaded reports.Latency
	bulkAlone, bulkLoaded   float64 // bytes a second
}

// runAlone measures the probes alone, then the bulk alone.
func (m *measurement) runAlone(ctx context.Context) error {
	p := &m.c.plan
	lim := limits{p.Iterations, p.Duration}
	m.crew.parts, m.crew.raw = parts{probes: true}, m.c.raw
	out, _, err := m.phase(ctx, "probes alone", genAlone, lim)
	if err != nil {
		return err
	}
	m.hol.probeAlone = out.rec.Snapshot()
	if err := m.handSamples(reports.SamplesProbeAlone, out); err != nil {
		return err
	}
	m.crew.parts = parts{bulk: true}
	if out, _, err = m.phase(ctx, "bulk alone", genBulk, lim); err != nil {
		return err
	}
	m.hol.bulkAlone = m.bulkRate(out)
	m.crew.parts = parts{bulk: true, probes: true}
	return nil
}

// keepLoaded takes the figures of the measured phase out of the recorder, which
// the next phase uses again.
func (m *measurement) keepLoaded() {
	if m.out == nil || m.out.rec == nil {
		return
	}
	if m.sh.Workload == WorkloadParamServer {
		m.rounds = m.out.rec.Snapshot()
	}
	if m.sh.Workload != WorkloadHOL {
		return
	}
	m.hol.probeLoaded, m.hol.bulkLoaded = m.out.rec.Snapshot(), m.bulkRate(m.out)
}

func (m *measurement) bulkRate(out *outcome) float64 {
	return reports.NewThroughput(out.ops*int64(m.sh.Size), out.ops, out.window).BytesPerSecond
}

// object is the hol object of the result.
func (f *holFigures) object(m *measurement) *reports.HOL {
	return &reports.HOL{
		AppSliceBytes: int64(m.sh.AppSlice), AppWindow: m.sh.AppWindow,
		Arm: m.sh.Arm, BulkSizeBytes: int64(m.sh.Size), ProbeSizeBytes: int64(m.sh.ProbeSize), ProbeIntervalNs: int64(m.c.plan.ProbeInterval),
		ProbeAlone: f.probeAlone, ProbeLoaded: f.probeLoaded, BulkAloneBytesPerSecond: f.bulkAlone, BulkLoadedBytesPerSecond: f.bulkLoaded,
	}
}

// setPace prepares the probes' pacer before the first phase.
func (m *measurement) setPace() {
	if m.sh.Workload != WorkloadHOL {
		return
	}
	m.crew.parts = parts{bulk: true, probes: true} // of the warm-up
	if every := m.c.plan.ProbeInterval; every > 0 {
		m.crew.pace = NewPacer(float64(every), false, m.sh.Seed)
	}
}

// holLimits holds the deeper of both queues against the transport's.
func holLimits(p *Plan, pt Point, caps transports.Caps) error {
	k, _ := transports.ParseKind(pt.Op)
	limit := maxUserDepth(caps)
	if limit > 0 && pt.Arm == ArmAppSlicing && p.AppWindow+probeSlots(k) > limit {
		return fmt.Errorf("application window %d with its probes is above the limit of %d", p.AppWindow, limit)
	}
	if limit > 0 && holDepth(p, k) > limit {
		return fmt.Errorf("bulk depth %d with its receives is above the limit of %d", p.BulkDepth, limit)
	}
	return nil
}

// holDepth is the deeper of both queues.
func holDepth(p *Plan, k transports.Kind) int {
	n := p.BulkDepth + 2*probeSlots(k) + holSlack
	if k == transports.KindSend {
		n += p.BulkDepth / 2
	}
	return n
}
