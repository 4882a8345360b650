package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// How a stream proves what arrived. Every message of a stream has a number, which its
// first bytes carry; a message that is compared whole has bytes that follow from its number,
// too, so that no other message passes for it. Who looks, and when:
//
//   - Of sends and writes with an immediate, the target looks at each message when its
//     receive completes, before it gives the slot back. Credits keep the slot until then.
//   - Of sends with an immediate that have no room for bytes, the immediate is the number.
//   - Of reads and atomics, the client looks when the operation completes. A read brings
//     another slot of the source each time, so that the bytes before it are wrong ones.
//   - A write tells nobody. What lies in a slot can be looked at before the next pass over
//     the slots overwrites it only if the client waits for that. It does after some passes,
//     chosen by the seed, and with VerifyAll after each: an 8-byte message behind the pass
//     asks the target to look, and a credit is the answer. The last pass is looked at when
//     the window is over.
//   - Both ways, each side does so for what the other sends.

const (
	// sampleEvery: one message in so many is compared whole, and one pass of writes looked
	// at. Arbitrary: to make and to compare a message takes each about as long as to send
	// it over a fast path, so that this costs less than one part in a hundred.
	sampleEvery = 256

	// numberSize is how many bytes a message's number takes, as far as it has them.
	numberSize = 8

	// CheckSize is the length of the message that asks for a look at a pass of writes: the
	// number of its first message.
	CheckSize = 8
)

// compared counts what was looked at in a phase.
type compared struct {
	Numbers  int64 `json:"numbers,omitempty"`  // messages whose number was compared
	Messages int64 `json:"messages,omitempty"` // of these, compared whole
	Bytes    int64 `json:"bytes,omitempty"`    // of all comparisons
}

func (c *compared) add(o compared) {
	c.Numbers += o.Numbers
	c.Messages += o.Messages
	c.Bytes += o.Bytes
}

// Message counts one that was compared whole.
func (c *compared) Message(bytes int) {
	c.Numbers++
	c.Messages++
	c.Bytes += int64(bytes)
}

// takeCompared sums up what the workers looked at since it was asked last.
func (c *Group) takeCompared() (sum compared) {
	for _, w := range c.Workers {
		sum.add(w.Compared)
		w.Compared = compared{}
	}
	return sum
}

// Numbered tells streams whose messages carry numbers.
func (sh *Shape) Numbered() bool { return sh.Verify && sh.work().Numbered && !sh.ImmAlone }

// TakesReceives tells operations that each consume a receive of the peer.
func TakesReceives(k transports.Kind) bool {
	return k == transports.KindSend || k == transports.KindSendImm || k == transports.KindWriteImm
}

// Whole tells whether message n of a phase is compared whole. Both sides agree by the seed.
// Generations of what a server sends are the complements of those of its phases.
func (sh *Shape) Whole(gen int, n uint64) bool {
	return sh.VerifyAll || max(gen, ^gen) == genVerify || sampled(sh.Seed, n)
}

// LooksAt tells whether the target looks at a pass of writes before the next one.
func (sh *Shape) LooksAt(pass uint64) bool { return sh.VerifyAll || sampled(^sh.Seed, pass) }

// sampled chooses the first, and one in sampleEvery of the others.
func sampled(seed, n uint64) bool { return n == 0 || mix(seed+n*0x9e3779b97f4a7c15)%sampleEvery == 0 }

// Write puts message n into a source slot: all of it where it is compared whole, else its
// number alone.
func (l *Lane) Write(b []byte, gen int, n uint64, whole bool) {
	if whole {
		FillPattern(b, PatternState(l.Sh.Seed, gen, l.Index, int(n)))
	}
	putNumber(b, n)
}

func putNumber(b []byte, n uint64) {
	if len(b) >= numberSize {
		binary.LittleEndian.PutUint64(b, n)
		return
	}
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
}

// Inspect compares message n where it arrived.
func (w *Worker) Inspect(l *Lane, b []byte, gen int, n uint64, whole bool) error {
	head := min(len(b), numberSize)
	var want [numberSize]byte
	binary.LittleEndian.PutUint64(want[:], n)
	if string(b[:head]) != string(want[:head]) {
		i := FirstDifference(b[:head], want[:head])
		return w.Corrupt(l, fmt.Sprintf("number of message %d", n), i, want[i], b[i])
	}
	w.Compared.Numbers++
	w.Compared.Bytes += int64(head)
	if !whole {
		return nil
	}
	state := PatternState(l.Sh.Seed, gen, l.Index, int(n))
	if i, want := matchPatternFrom(b, head, state); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("message %d", n), i, want, b[i])
	}
	w.Compared.Messages++
	w.Compared.Bytes += int64(len(b) - head)
	return nil
}

// LookAtRead compares what read n brought: the bytes of a slot of the source, which are told
// apart by all of them.
func (w *Worker) LookAtRead(l *Lane, gen int, n uint64, whole bool) error {
	sh := l.Sh
	b := l.Mem[sh.RxSlot(int(n%uint64(sh.Slots))):][:sh.Size]
	state := PatternState(sh.Seed, gen, l.Index, sh.ReadFrom(n))
	if !whole {
		b = b[:min(len(b), numberSize)]
		w.Compared.Numbers++
		w.Compared.Bytes += int64(len(b))
	} else {
		w.Compared.Message(len(b))
	}
	if i, want := MatchPattern(b, state); i >= 0 {
		return w.Corrupt(l, fmt.Sprintf("answer to read %d", n), i, want, b[i])
	}
	return nil
}

// ReadFrom is the slot of the source that read n asks for: the next one in every pass, so
// that a slot of the destination never gets the bytes that it holds.
func (sh *Shape) ReadFrom(n uint64) int {
	slots := uint64(sh.Slots)
	return int((n + n/slots) % slots)
}

// Gaps holds what lies behind every slot, and the slots that nothing was written to.
func (w *Worker) Gaps(l *Lane, count int64) error { return w.GapsOf(l, 0, l.Sh.Slots, 0, count) }

// GapsOf is the same of so many slots from base on, which messages from number first on fill.
func (w *Worker) GapsOf(l *Lane, base, slots int, first uint64, count int64) error {
	sh := l.Sh
	start := int(first % uint64(slots))
	for s := base; s < base+slots; s++ {
		slot := l.Mem[sh.RxSlot(s):][:sh.Stride()]
		what := fmt.Sprintf("window slot %d", s)
		if int64((s-base-start+slots)%slots) >= count {
			if i := FirstNonZero(slot[:sh.Size]); i >= 0 {
				return w.Corrupt(l, what+" (never written)", i, 0, slot[i])
			}
		}
		if i := FirstNonZero(slot[sh.Size:]); i >= 0 {
			return w.Corrupt(l, what+" (behind its end)", i, 0, slot[sh.Size+i])
		}
	}
	return nil
}

// LookAtWrites compares messages first to first+count-1 of writes, at most a pass, where
// they lie.
func (w *Worker) LookAtWrites(l *Lane, gen int, first uint64, count int64) error {
	sh := l.Sh
	for n := first; n < first+uint64(count); n++ {
		slot := int(n % uint64(sh.Slots))
		if err := w.Inspect(l, l.Mem[sh.RxSlot(slot):][:sh.Size], gen, n, sh.Whole(gen, n) || sh.LooksAt(n/uint64(sh.Slots))); err != nil {
			return err
		}
	}
	return nil
}

// verification says what was compared of so many messages of the measured phase.
func (m *Measurement) verification(messages int64) *reports.Verification {
	v := &reports.Verification{Mode: reports.VerifyNone, Messages: messages}
	if !m.Sh.Verify {
		return v
	}
	v.Mode = reports.VerifySample
	if m.Sh.VerifyAll {
		v.Mode = reports.VerifyAll
	}
	v.Numbers, v.Whole, v.Bytes = m.compared.Numbers, m.compared.Messages, m.compared.Bytes
	return v
}
