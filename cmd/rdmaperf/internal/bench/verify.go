package bench

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
)

// fillSource writes a phase's pattern: one sequence per slot of a stream, one
// over the whole source region of a ping-pong.
func (l *lane) fillSource(gen int) {
	sh := l.sh
	if sh.Workload == WorkloadLatency {
		fillPattern(l.mem[:sh.rxOff()], patternState(l.seedOut, gen, l.index, 0))
		return
	}
	if sh.Workload == WorkloadHOL {
		fillPattern(l.mem[sh.probeTx(0):sh.rxOff()], patternState(l.seedOut, gen, l.index, probePattern))
	}
	for s := range sh.Slots {
		slot := l.mem[s*sh.stride():][:sh.stride()]
		fillPattern(slot[:sh.Size], patternState(l.seedOut, gen, l.index, s))
		// A transport that moves too much brings these into a gap of zeros.
		for i := range slot[sh.Size:] {
			slot[sh.Size+i] = gapByte
		}
	}
}

// gapByte fills the source's gaps; any value but zero will do.
const gapByte = 0xa5

// keepReference remembers what the source of a ping-pong holds, apart from the
// window: a transport that damages the source is noticed as well.
func (l *lane) keepReference(gen int) {
	slot := 0
	if l.sh.Workload == WorkloadHOL {
		slot = probePattern
	}
	if ref := l.ref.Bytes(); ref != nil {
		fillPattern(ref, patternState(l.sh.Seed, gen, l.index, slot))
	}
}

// verifySlots holds the destination slots of a stream against the pattern:
// operations first to first+count-1 filled slot number mod Slots; other slots,
// and the gaps between slots, are still zero.
func (w *worker) verifySlots(l *lane, gen int, first uint64, count int64) error {
	sh := l.sh
	if isAtomic(sh.kind()) {
		return nil
	}
	start := int(first % uint64(sh.Slots))
	for s := range sh.Slots {
		slot := l.mem[sh.rxSlot(s):][:sh.stride()]
		data, gap := slot[:sh.Size], slot[sh.Size:]
		what := fmt.Sprintf("window slot %d", s)
		if int64((s-start+sh.Slots)%sh.Slots) < count {
			if i, want := matchPattern(data, patternState(l.seedIn, gen, l.index, s)); i >= 0 {
				return w.corrupt(l, what, i, want, data[i])
			}
		} else if i := firstNonZero(data); i >= 0 {
			return w.corrupt(l, what+" (never written)", i, 0, data[i])
		}
		if i := firstNonZero(gap); i >= 0 {
			return w.corrupt(l, what+" (behind its end)", i, 0, gap[i])
		}
	}
	return nil
}

// verifySinks does the same on the client of an atomic stream: every slot holds
// the old value that the last atomic of that slot fetched.
func (w *worker) verifySinks(l *lane) error {
	sh := l.sh
	for s := range min(int64(sh.Slots), l.posted) {
		last := (l.posted - 1 - s) / int64(sh.Slots)
		if err := w.verifyCounter(l, sh.rxSlot(int(s)), uint64(s+last*int64(sh.Slots))); err != nil {
			return err
		}
	}
	return nil
}

// verifyTarget holds the server's windows against what the client says it sent.
func (c *crew) verifyTarget(gen int, lanes []laneCount) error {
	if len(lanes) != len(c.lanes) {
		return peerError("verify windows", fmt.Errorf("counts for %d QPs, want %d", len(lanes), len(c.lanes)), "")
	}
	if c.sh.Bidirectional {
		return c.verifyDuplex(gen, lanes)
	}
	k := c.sh.kind()
	for _, w := range c.workers {
		for _, l := range w.lanes {
			n := lanes[l.index]
			var err error
			switch {
			case c.sh.Workload == WorkloadLatency || k == transports.KindRead:
			case c.sh.Workload == WorkloadStarvation:
				err = w.verifyClasses(l, gen, n)
			case c.sh.Workload == WorkloadHOL:
				err = w.verifyHOL(l, gen, n)
			case isAtomic(k):
				err = w.verifyFinal(l, uint64(n.Count))
			default:
				err = w.verifySlots(l, gen, n.First, n.Count)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyFinal holds the target's counter against the number of atomics.
func (w *worker) verifyFinal(l *lane, count uint64) error {
	if err := w.verifyCounter(l, l.sh.rxSlot(0), count); err != nil {
		w.bad.What = "counter after the last atomic"
		return corrupted(w.bad)
	}
	return nil
}

// verifyInitiator checks what came back to the client of a stream.
func (c *crew) verifyInitiator(gen int) error {
	if c.sh.Workload == WorkloadParamServer {
		return c.workers[0].verifySlots(c.lanes[0], gen, 0, c.lanes[0].posted)
	}
	if !c.sh.streaming() || c.sh.Bidirectional {
		return nil
	}
	k := c.sh.kind()
	for _, w := range c.workers {
		for _, l := range w.lanes {
			var err error
			switch {
			case k == transports.KindRead:
				err = w.verifySlots(l, gen, l.first, l.posted)
			case isAtomic(k):
				err = w.verifySinks(l)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
