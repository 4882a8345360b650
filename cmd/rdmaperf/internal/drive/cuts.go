package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// Messages of workloads that keep several classes or tensors under way, and whose long ones
// share few slots, are cut out of one source: message n begins ShiftStep bytes behind message
// n-1, and again at the start after sourceCuts of them. A pattern has each of its words once,
// so the first bytes of a message are its number, modulo sourceCuts, and no two messages of so
// many have a byte in common place. Nothing is written for a message, nothing has to be waited
// for before the next, and any message can be compared whole.

// sourceCuts is more than are ever under way in these workloads but for the shortest messages, of a source that
// still fits into an L2 cache beside them: 256 KiB.
const sourceCuts = 4096

// SourceSize is the length of a source of messages of size bytes.
func SourceSize(size int) int {
	return (size+engine.SlotAlign-1)&^(engine.SlotAlign-1) + (sourceCuts-1)*engine.ShiftStep
}

// SourceAt is where message n begins.
func SourceAt(n uint64) int { return int(n%sourceCuts) * engine.ShiftStep }

// FillSource writes a phase's source. Which tells sources of one lane apart.
func FillSource(l *engine.Lane, b []byte, gen, which int) {
	engine.FillPattern(b, sourceState(l, gen, which))
}

// sourceState has a slot number above every number of a slot.
func sourceState(l *engine.Lane, gen, which int) uint64 {
	return engine.PatternState(l.Sh.Seed, gen, l.Index, 2*engine.MaxDepth+which)
}

// CompareCut compares message n, which lies in b and begins skip bytes behind the start of its cut of a source: its
// first bytes, and where it is compared whole the others.
func CompareCut(w *engine.Worker, l *engine.Lane, b []byte, gen, which, skip int, n uint64, whole bool) error {
	return CompareText(w, l, "message", n, b, sourceState(l, gen, which), SourceAt(n)+skip, whole)
}

// CompareCuts compares messages first to first+count-1 of writes, at most a pass of so many slots from slot base on,
// whole where they lie.
func CompareCuts(w *engine.Worker, l *engine.Lane, gen, which, base, slots int, first uint64, count int64) error {
	for n := first; n < first+uint64(count); n++ {
		b := l.Mem[l.Sh.RxSlot(base+int(n%uint64(slots))):][:l.Sh.Size]
		if err := CompareCut(w, l, b, gen, which, 0, n, true); err != nil {
			return err
		}
	}
	return nil
}
