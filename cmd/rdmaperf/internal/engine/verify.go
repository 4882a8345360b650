package engine

import (
	"encoding/binary"
	"fmt"
)

// FillSlots writes a phase's pattern: a sequence for each source slot.
func (l *Lane) FillSlots(seed uint64, gen int) {
	sh := l.Sh
	for s := range sh.Slots {
		slot := l.Mem[s*sh.Stride():][:sh.Stride()]
		FillPattern(slot[:sh.Size], PatternState(seed, gen, l.Index, s))
		// A transport that moves too much brings these into a gap of zeros.
		for i := range slot[sh.Size:] {
			slot[sh.Size+i] = gapByte
		}
	}
}

// gapByte fills the source's gaps; any value but zero will do.
const gapByte = 0xa5

// Miscounted is the error of messages that were lost or came twice.
func (w *Worker) Miscounted(l *Lane, got, want int64) error {
	return w.Corrupt(l, fmt.Sprintf("number of messages, %d of %d", got, want), 0, byte(want), byte(got))
}

// VerifyCounts tells whether the peer counted every QP.
func (c *Group) VerifyCounts(lanes []LaneCount) error {
	if len(lanes) != len(c.Lanes) {
		return PeerError("verify windows", fmt.Errorf("counts for %d QPs, want %d", len(lanes), len(c.Lanes)), "")
	}
	return nil
}

// VerifyCounter compares the 8 bytes at window offset at with want.
func (w *Worker) VerifyCounter(l *Lane, at int, want uint64) error {
	got := binary.NativeEndian.Uint64(l.Mem[at:])
	if got == want {
		return nil
	}
	var g, e [8]byte
	binary.NativeEndian.PutUint64(g[:], got)
	binary.NativeEndian.PutUint64(e[:], want)
	i := FirstDifference(g[:], e[:])
	return w.Corrupt(l, fmt.Sprintf("old value of atomic %d", want), i, e[i], g[i])
}

// VerifyFinal holds the target's counter against the number of atomics.
func (w *Worker) VerifyFinal(l *Lane, count uint64) error {
	if err := w.VerifyCounter(l, l.Sh.RxSlot(0), count); err != nil {
		w.bad.What = "counter after the last atomic"
		return Corrupted(w.bad)
	}
	return nil
}
