package drive

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// How a workload proves what arrived. Every message has a number, which its first bytes carry; a message that
// is compared whole has bytes that follow from its number, too, so that no other message passes for it. Who
// compares, and when:
//
//   - Of sends and writes with an immediate, the target compares each message when its receive completes, before
//     it gives the slot back. Credits keep the slot until then.
//   - Of sends with an immediate that have no room for bytes, the immediate is the number.
//   - Of reads and atomics, the client compares when the operation completes. A read brings another slot of the
//     source each time, so that the bytes before it are wrong ones.
//   - A write completes nothing at the target. What lies in a slot can be compared before the next pass over the
//     slots overwrites it only if the client waits for that ([Pass]). It does after some passes, chosen by the
//     seed, and with VerifyAll after each. The last pass is compared when the window is over.
//   - Both ways, each side does so for what the other sends.

const (
	// sampleEvery: one message in so many is compared whole, and one pass of writes. To make and to compare a
	// message takes each about as long as to send it over a fast path.
	sampleEvery = 256

	// numberSize is how many bytes a message's number takes, as far as it has them.
	numberSize = 8
)

// Whole tells whether message n of a phase is compared whole. Both sides agree by the seed. Generations of what a
// server sends are the complements of those of its phases.
func Whole(sh *engine.Shape, gen int, n uint64) bool {
	return sh.VerifyAll || max(gen, ^gen) == engine.GenVerify || n == 0 || Sampled(sh.Seed, n, sampleEvery)
}

// comparesPass tells whether the target compares a pass of writes before the next one.
func comparesPass(sh *engine.Shape, pass uint64) bool {
	return sh.VerifyAll || pass == 0 || Sampled(^sh.Seed, pass, sampleEvery)
}

// Sampled chooses one in every.
func Sampled(seed, n, every uint64) bool { return engine.Word(seed, int(n))%every == 0 }

// Pass tells when a stream of writes waits for its target to compare what lies in the slots, before the next pass
// over them overwrites it.
type Pass struct {
	asked   int64 // writes posted when that was asked for last
	Waiting bool  // for the answer
}

// Room bounds the next k writes, of which so many are posted, to a pass that is compared. due says that the last
// pass has to be, before any other write.
func (p *Pass) Room(sh *engine.Shape, slots int, posted int64, k int) (room int, due bool) {
	n := int64(slots)
	switch pass := uint64(posted / n); {
	case p.Waiting:
		return 0, false
	case posted > p.asked && posted%n == 0 && comparesPass(sh, pass-1):
		return 0, true
	case comparesPass(sh, pass):
		return min(k, int(n-posted%n)), false
	}
	return k, false
}

// Ask says that the target was asked behind so many writes.
func (p *Pass) Ask(posted int64) { p.asked, p.Waiting = posted, true }

// PutNumber writes the number of a message, as far as it has bytes.
func PutNumber(b []byte, n uint64) {
	if len(b) >= numberSize {
		binary.LittleEndian.PutUint64(b, n)
		return
	}
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}

// matchNumber returns the offset of the first byte of a message that is not its number's; -1 for none.
func matchNumber(b []byte, n uint64) (offset int, want byte) {
	if len(b) >= numberSize && binary.LittleEndian.Uint64(b) == n {
		return -1, 0
	}
	for i := range min(len(b), numberSize) {
		if want := byte(n >> (8 * i)); b[i] != want {
			return i, want
		}
	}
	return -1, 0
}

// MatchMessage is the same of a message whose bytes behind the number are those of a sequence.
func MatchMessage(b []byte, n, state uint64) (offset int, want byte) {
	head := min(len(b), numberSize)
	if offset, want = matchNumber(b, n); offset >= 0 || len(b) == head {
		return offset, want
	}
	if offset, want = engine.MatchPatternAt(b[head:], state, head); offset >= 0 {
		offset += head
	}
	return offset, want
}

// writeMessage puts message n into a source slot: all of it where it is compared whole, else its number alone.
func writeMessage(l *engine.Lane, b []byte, gen int, n uint64, whole bool) {
	if whole {
		engine.FillPattern(b, engine.PatternState(l.Sh.Seed, gen, l.Index, int(n)))
	}
	PutNumber(b, n)
}

// compareMessage compares message n where it arrived.
func compareMessage(w *engine.Worker, l *engine.Lane, b []byte, gen int, n uint64, whole bool) error {
	if i, want := matchNumber(b, n); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("number of message %d", n), i, want, b[i])
	}
	if !whole {
		w.Compared.Numbers++
		w.Compared.Bytes += int64(min(len(b), numberSize))
		return nil
	}
	if i, want := MatchMessage(b, n, engine.PatternState(l.Sh.Seed, gen, l.Index, int(n))); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("message %d", n), i, want, b[i])
	}
	w.Compared.Message(len(b))
	return nil
}

// CompareText compares what is the n-th of its kind and has the bytes of a sequence from byte at on; where it is
// not compared whole, the first of them alone.
func CompareText(w *engine.Worker, l *engine.Lane, what string, n uint64, b []byte, state uint64, at int,
	whole bool) error {
	if whole {
		w.Compared.Message(len(b))
	} else {
		b = b[:min(len(b), numberSize)]
		w.Compared.Numbers++
		w.Compared.Bytes += int64(len(b))
	}
	if i, want := engine.MatchPatternAt(b, state, at); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("%s %d", what, n), i, want, b[i])
	}
	return nil
}

// compareRead compares what read n brought: the bytes of a slot of the source, which are told apart by all of them.
func compareRead(w *engine.Worker, l *engine.Lane, gen int, n uint64) error {
	sh := l.Sh
	b := l.Mem[sh.RxSlot(int(n%uint64(sh.Slots))):][:sh.Size]
	return CompareText(w, l, "answer to read", n, b, engine.PatternState(sh.Seed, gen, l.Index, readFrom(sh, n)), 0,
		Whole(sh, gen, n))
}

// readFrom is the slot of the source that read n asks for: the next one in every pass, so that a slot of the
// destination never gets the bytes that it holds.
func readFrom(sh *engine.Shape, n uint64) int {
	slots := uint64(sh.Slots)
	return int((n + n/slots) % slots)
}

// compareWrites compares messages first to first+count-1 of writes, at most a pass, where they lie.
func compareWrites(w *engine.Worker, l *engine.Lane, gen int, first uint64, count int64) error {
	sh := l.Sh
	for n := first; n < first+uint64(count); n++ {
		b := l.Mem[sh.RxSlot(int(n%uint64(sh.Slots))):][:sh.Size]
		if err := compareMessage(w, l, b, gen, n, Whole(sh, gen, n) ||
			comparesPass(sh, n/uint64(sh.Slots))); err != nil {
			return err
		}
	}
	return nil
}

// CompareGaps compares what lies behind each of so many slots from base on, which messages from number first on
// fill, and the slots that no message was written to.
func CompareGaps(w *engine.Worker, l *engine.Lane, base, slots int, first uint64, count int64) error {
	sh := l.Sh
	start := int(first % uint64(slots))
	for s := base; s < base+slots; s++ {
		slot := l.Mem[sh.RxSlot(s):][:sh.Stride()]
		what := fmt.Sprintf("window slot %d", s)
		if int64((s-base-start+slots)%slots) >= count {
			if i := engine.FirstNonZero(slot[:sh.Size]); i >= 0 {
				return w.Corrupt(l, what+" (never written)", i, 0, slot[i])
			}
		}
		if i := engine.FirstNonZero(slot[sh.Size:]); i >= 0 {
			return w.Corrupt(l, what+" (behind its end)", i, 0, slot[sh.Size+i])
		}
	}
	return nil
}

// fillSlots writes a phase's pattern: a sequence for each source slot.
func fillSlots(l *engine.Lane, gen int) {
	sh := l.Sh
	for s := range sh.Slots {
		slot := l.Mem[s*sh.Stride():][:sh.Stride()]
		engine.FillPattern(slot[:sh.Size], engine.PatternState(sh.Seed, gen, l.Index, s))
		for i := range slot[sh.Size:] {
			slot[sh.Size+i] = gapByte
		}
	}
}

// gapByte fills the source's gaps, so that a transport which moves too much leaves it in a gap of zeros.
const gapByte = 0xa5

// compareCounter compares the 8 bytes at window offset at with the value of an atomic's target.
func compareCounter(w *engine.Worker, l *engine.Lane, at int, want uint64, what string) error {
	got := binary.NativeEndian.Uint64(l.Mem[at:])
	if got == want {
		return nil
	}
	var g, e [8]byte
	binary.NativeEndian.PutUint64(g[:], got)
	binary.NativeEndian.PutUint64(e[:], want)
	i := engine.FirstDifference(g[:], e[:])
	return w.Corrupt(l, what, i, e[i], g[i])
}

// compareFetched compares the old value that atomic n fetched.
func compareFetched(w *engine.Worker, l *engine.Lane, at int, n uint64) error {
	w.Compared.Message(engine.AtomicSize)
	if binary.NativeEndian.Uint64(l.Mem[at:]) == n {
		return nil
	}
	return compareCounter(w, l, at, n, fmt.Sprintf("old value of atomic %d", n))
}
