package engine

import "fmt"

// Messages of workloads that keep several classes or tensors under way, and whose long ones
// share few slots, are cut out of one source: message n begins ShiftStep bytes behind message
// n-1, and again at the start after sourceCuts of them. A pattern has each of its words once,
// so the first bytes of a message are its number, modulo sourceCuts, and no two messages of so
// many have a byte in common place. Nothing is written for a message, nothing has to be waited
// for before the next, and any message can be compared whole.

// sourceCuts: more than are ever under way in these workloads but for the shortest messages,
// of a source that still fits into an L2 cache beside them: 256 KiB. Arbitrary.
const sourceCuts = 4096

// SourceSize is the length of a source of messages of size bytes.
func SourceSize(size int) int {
	return (size+SlotAlign-1)&^(SlotAlign-1) + (sourceCuts-1)*ShiftStep
}

// SourceAt is where message n begins.
func SourceAt(n uint64) int { return int(n%sourceCuts) * ShiftStep }

// FillSource writes a phase's source. Which tells sources of one lane apart.
func (l *Lane) FillSource(b []byte, gen, which int) {
	FillPattern(b, PatternState(l.Sh.Seed, gen, l.Index, sourcePattern+which))
}

// sourcePattern is the pattern's slot number of a source, above every number of a slot.
const sourcePattern = 2 * MaxDepth

// InspectCut compares message n, which lies in b and begins skip bytes behind the start of its
// cut of a source: its first bytes, and where it is compared whole the others.
func (w *Worker) InspectCut(l *Lane, b []byte, gen, which, skip int, n uint64, whole bool) error {
	if !whole {
		b = b[:min(len(b), numberSize)]
		w.Compared.Numbers++
		w.Compared.Bytes += int64(len(b))
	} else {
		w.Compared.Message(len(b))
	}
	state := PatternState(l.Sh.Seed, gen, l.Index, sourcePattern+which)
	if i, want := MatchPatternAt(b, state, SourceAt(n)+skip); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("message %d", n), i, want, b[i])
	}
	return nil
}

// LookAtCuts compares messages first to first+count-1 of writes, at most a pass of so many
// slots from slot base on, whole where they lie.
func (w *Worker) LookAtCuts(l *Lane, gen, which, base, slots int, first uint64, count int64) error {
	sh := l.Sh
	for n := first; n < first+uint64(count); n++ {
		slot := base + int(n%uint64(slots))
		if err := w.InspectCut(l, l.Mem[sh.RxSlot(slot):][:sh.Size], gen, which, 0, n, true); err != nil {
			return err
		}
	}
	return nil
}
