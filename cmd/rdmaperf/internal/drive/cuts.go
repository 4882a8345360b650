package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// Messages of workloads with several classes or tensors are cut out of one source, ShiftStep bytes apart. A pattern has
// each word once, so the first bytes of a message are its number modulo sourceCuts, and nothing is written.

// sourceCuts is more than are ever under way but for the shortest messages, of a source of 256 KiB.
const sourceCuts = 4096

// SourceSize is the length of a source of messages of size bytes.
func SourceSize(size int) int {
	return (size+engine.SlotAlign-1)&^(engine.SlotAlign-1) + (sourceCuts-1)*engine.ShiftStep
}

func sourceAt(n uint64) int { return int(n%sourceCuts) * engine.ShiftStep }

// Cuts is a source that messages are cut out of, the slots that they fill in turn, and which of them were compared.
type Cuts struct {
	Proof
	Pass
	which       int // number of the source in the session
	base, slots int
}

// NewCuts is source number which of a session, whose messages have so many slots.
func NewCuts(p Proof, which, slots int) Cuts {
	return Cuts{Proof: p, which: which, base: which * slots, slots: slots}
}

// state has a slot number above every number of a slot.
func (c *Cuts) state() uint64 { return c.State(2*engine.MaxDepth + c.which) }

// Begin writes a phase's source.
func (c *Cuts) Begin(gen int) {
	c.Gen, c.Pass = gen, Pass{}
	engine.FillPattern(c.L.Mem[c.which*SourceSize(c.L.Sh.Size):][:SourceSize(c.L.Sh.Size)], c.state())
}

// From is the window offset of message n in the source.
func (c *Cuts) From(n int64) uint64 {
	return uint64(c.which*SourceSize(c.L.Sh.Size) + sourceAt(uint64(n)))
}

// Slot is the window offset of the slot of message n.
func (c *Cuts) Slot(n int64) int { return c.L.Sh.RxSlot(c.base + int(n%int64(c.slots))) }

// Room bounds the next k writes, of which so many are posted, to a pass that is compared.
func (c *Cuts) Room(posted int64, k int) (room int, due bool) {
	return c.room(&c.Proof, c.slots, posted, k)
}

// Compare compares message n, which lies in b and begins skip bytes behind its cut: the first bytes, or if whole all.
func (c *Cuts) Compare(b []byte, skip int, n int64, whole bool) error {
	return c.Text("message", uint64(n), b, c.state(), sourceAt(uint64(n))+skip, whole)
}

// Written compares messages first to end-1 of writes, at most a pass, whole where they lie.
func (c *Cuts) Written(first, end int64) error {
	for n := first; n < end; n++ {
		if err := c.Compare(c.L.Mem[c.Slot(n):][:c.L.Sh.Size], 0, n, true); err != nil {
			return err
		}
	}
	return nil
}

// Rest compares what is left of count writes, of which those before compared were, and what lies around them.
func (c *Cuts) Rest(compared, count int64) error {
	if err := c.Gaps(c.base, c.slots, 0, count); err != nil {
		return err
	}
	return c.Written(max(compared, count-int64(c.slots)), count) // the others are gone
}

// Pass is when a stream of writes waits for its target to compare the slots before the next pass over them.
type Pass struct {
	asked   int64 // writes posted when that was asked for last
	Waiting bool  // for the answer
}

// room bounds the next k writes to a pass that is compared. due: the last pass has to be, before any other write.
func (p *Pass) room(of *Proof, slots int, posted int64, k int) (room int, due bool) {
	n := int64(slots)
	switch pass := uint64(posted / n); {
	case p.Waiting:
		return 0, false
	case posted > p.asked && posted%n == 0 && of.comparesPass(pass-1):
		return 0, true
	case of.comparesPass(pass):
		return min(k, int(n-posted%n)), false
	}
	return k, false
}

// Ask says that the target was asked behind so many writes.
func (p *Pass) Ask(posted int64) { p.asked, p.Waiting = posted, true }
