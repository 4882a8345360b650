package drive

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// The first bytes of a message are its number; one that is compared byte by byte has bytes that follow from it.
//
// Sends and writes with an immediate are compared by the target when the receive completes, before it gives the slot
// back; reads and atomics by the client when they complete. Writes are compared by the target after the window and
// after passes over the slots that the seed chose, or with VerifyAll after each, for which the client waits ([Pass]).

const (
	// sampleEvery: one message, or pass of writes, in so many is compared byte by byte. That takes as long as a fast
	// path.
	sampleEvery = 256
	numberSize  = 8 // how many bytes a message's number takes, as far as it has them
)

// Proof compares what arrived of one sender in a phase and counts in its worker what was compared.
type Proof struct {
	W     *engine.Worker
	L     *engine.Lane
	every uint64
	Gen   int // of the sender's patterns
}

// NewProof is that of a session, with a sample of one message in sampleEvery.
func NewProof(w *engine.Worker, l *engine.Lane) Proof { return Proof{W: w, L: l, every: sampleEvery} }

// State starts the sequence of a slot or a message of the phase.
func (p *Proof) State(slot int) uint64 {
	return engine.PatternState(p.L.Sh.Seed, p.Gen, p.L.Index, slot)
}

// Whole reports whether message n of the phase is compared byte by byte. Generations of what a server sends are
// complements.
func (p *Proof) Whole(n uint64) bool {
	return p.L.Sh.VerifyAll || max(p.Gen, ^p.Gen) == engine.GenVerify || n == 0 || sampled(p.L.Sh.Seed, n, p.every)
}

// comparesPass reports whether the target compares a pass of writes before the next one.
func (p *Proof) comparesPass(pass uint64) bool {
	return p.L.Sh.VerifyAll || pass == 0 || sampled(^p.L.Sh.Seed, pass, p.every)
}

// sampled chooses one in every, a power of two.
func sampled(seed, n, every uint64) bool { return engine.Word(seed, int(n))&(every-1) == 0 }

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

// matchMessage is the same of a message whose bytes behind the number are those of a sequence.
func matchMessage(b []byte, n, state uint64) (offset int, want byte) {
	head := min(len(b), numberSize)
	if offset, want = matchNumber(b, n); offset >= 0 || len(b) == head {
		return offset, want
	}
	if offset, want = engine.MatchPatternAt(b[head:], state, head); offset >= 0 {
		offset += head
	}
	return offset, want
}

// write puts message n into a source slot: all of it where it is compared byte by byte, else its number alone.
func (p *Proof) write(b []byte, n uint64, whole bool) {
	if whole {
		engine.FillPattern(b, p.State(int(n)))
	}
	PutNumber(b, n)
}

func (p *Proof) message(b []byte, n uint64, whole bool) error {
	if i, want := matchNumber(b, n); i >= 0 {
		return p.W.Corrupt(p.L, fmt.Sprintf("number of message %d", n), i, want, b[i])
	}
	if !whole {
		p.W.Compared.Number(min(len(b), numberSize))
		return nil
	}
	if i, want := matchMessage(b, n, p.State(int(n))); i >= 0 {
		return p.W.Corrupt(p.L, fmt.Sprintf("message %d", n), i, want, b[i])
	}
	p.W.Compared.Message(len(b))
	return nil
}

// Text compares the n-th of its kind with the bytes of a sequence from byte at on, or unless whole the first of them.
func (p *Proof) Text(what string, n uint64, b []byte, state uint64, at int, whole bool) error {
	if whole {
		p.W.Compared.Message(len(b))
	} else {
		b = b[:min(len(b), numberSize)]
		p.W.Compared.Number(len(b))
	}
	if i, want := engine.MatchPatternAt(b, state, at); i >= 0 {
		return p.W.Corrupt(p.L, fmt.Sprintf("%s %d", what, n), i, want, b[i])
	}
	return nil
}

// Echo compares what came back with what was sent.
func (p *Proof) Echo(what string, n uint64, got, want []byte) error {
	p.W.Compared.Message(len(want))
	if string(got) == string(want) { // compiled to a memory compare; no copy is made
		return nil
	}
	i := engine.FirstDifference(got, want)
	return p.W.Corrupt(p.L, fmt.Sprintf("%s %d", what, n), i, want[i], got[i])
}

func (p *Proof) slot(n uint64) []byte {
	sh := p.L.Sh
	return p.L.Mem[sh.RxSlot(int(n%uint64(sh.Slots))):][:sh.Size]
}

// read compares what read n brought: the bytes of a slot of the source, which all differ from slot to slot.
func (p *Proof) read(n uint64) error {
	return p.Text("answer to read", n, p.slot(n), p.State(readFrom(p.L.Sh, n)), 0, p.Whole(n))
}

// readFrom is the slot of the source that read n asks for: another one in every pass, as the destination has those
// bytes.
func readFrom(sh *engine.Shape, n uint64) int {
	slots := uint64(sh.Slots)
	return int((n + n/slots) % slots)
}

// writes compares messages first to first+count-1 of writes, at most a pass, where they lie.
func (p *Proof) writes(first uint64, count int64) error {
	for n := first; n < first+uint64(count); n++ {
		if err := p.message(p.slot(n), n, p.Whole(n) || p.comparesPass(n/uint64(p.L.Sh.Slots))); err != nil {
			return err
		}
	}
	return nil
}

// Gaps compares what lies behind each of so many slots from base on, which messages from number first on fill, and the
// slots that no message was written to.
func (p *Proof) Gaps(base, slots int, first uint64, count int64) error {
	sh := p.L.Sh
	start := int(first % uint64(slots))
	for s := base; s < base+slots; s++ {
		slot := p.L.Mem[sh.RxSlot(s):][:sh.Stride()]
		if int64((s-base-start+slots)%slots) >= count {
			if err := p.untouched(slot, 0, sh.Size, s, "never written"); err != nil {
				return err
			}
		}
		if err := p.untouched(slot, sh.Size, len(slot), s, "behind its end"); err != nil {
			return err
		}
	}
	return nil
}

func (p *Proof) untouched(slot []byte, from, to, s int, why string) error {
	if i := engine.FirstNonZero(slot[min(from, to):to]); i >= 0 {
		return p.W.Corrupt(p.L, fmt.Sprintf("window slot %d (%s)", s, why), from+i, 0, slot[from+i])
	}
	return nil
}

// fillSlots writes a phase's pattern: a sequence for each source slot.
func (p *Proof) fillSlots() {
	sh := p.L.Sh
	for s := range sh.Slots {
		slot := p.L.Mem[s*sh.Stride():][:sh.Stride()]
		engine.FillPattern(slot[:sh.Size], p.State(s))
		for i := range slot[sh.Size:] {
			slot[sh.Size+i] = 0xa5 // a transport which moves too much leaves it in a gap of zeros
		}
	}
}

// counter compares the 8 bytes at window offset at with the value of an atomic's target.
func (p *Proof) counter(at int, want uint64, what string) error {
	got := binary.NativeEndian.Uint64(p.L.Mem[at:])
	if got == want {
		return nil
	}
	var g, e [8]byte
	binary.NativeEndian.PutUint64(g[:], got)
	binary.NativeEndian.PutUint64(e[:], want)
	i := engine.FirstDifference(g[:], e[:])
	return p.W.Corrupt(p.L, what, i, e[i], g[i])
}

// fetched compares the old value that atomic n fetched.
func (p *Proof) fetched(at int, n uint64) error {
	p.W.Compared.Message(engine.AtomicSize)
	if binary.NativeEndian.Uint64(p.L.Mem[at:]) == n {
		return nil
	}
	return p.counter(at, n, fmt.Sprintf("old value of atomic %d", n))
}

// LocalProof is that of a workload with both ends in its process, with a sample of one message in every, a power of
// two. Behind its number a message has the bytes of its sender, see [FillSender].
func LocalProof(r *engine.Run, every int) *Proof {
	sh := &engine.Shape{Point: r.Point, Seed: r.Plan.Seed, Verify: r.Plan.Verify,
		Timeout: cmp.Or(r.Plan.Timeout, engine.DefaultTimeout)}
	sh.VerifyAll = sh.Verify && (r.Plan.VerifyAll || every == 1)
	return &Proof{W: &engine.Worker{Sh: sh, Role: engine.SideClient}, L: &engine.Lane{Sh: sh}, every: uint64(every)}
}

// FillSender writes what surrounds the numbers of a sender.
func FillSender(b []byte, sender int) { engine.FillPattern(b, senderState(sender)) }

func senderState(sender int) uint64 { return engine.PatternState(0, 0, sender, 0) }

// Same reports whether b is message n of a sender, and counts it if it is.
func (p *Proof) Same(b []byte, sender int, n uint64) bool {
	if i, _ := matchMessage(b, n, senderState(sender)); i >= 0 {
		return false
	}
	p.W.Compared.Message(len(b))
	return true
}

// Corrupt is the error about a message that was not the same.
func (p *Proof) Corrupt(b []byte, sender int, n uint64) error {
	i, want := matchMessage(b, n, senderState(sender))
	return p.W.Corrupt(p.L, fmt.Sprintf("message %d of sender %d", n, sender), i, want, b[max(i, 0)])
}

// Take returns what was compared of so many messages since the last call.
func (p *Proof) Take(messages int64) *reports.Verification {
	v := p.L.Sh.Verification(p.W.Compared, messages)
	p.W.Compared = engine.Compared{}
	return v
}

// AllCompared is the verification of a workload that compares each message whole, whatever --verify is.
func AllCompared(messages, bytes int64) *reports.Verification {
	return &reports.Verification{Mode: reports.VerifyAll, Messages: messages, Numbers: messages, Whole: messages,
		Bytes: bytes}
}
