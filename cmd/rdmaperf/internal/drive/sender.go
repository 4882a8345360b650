package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Sender is a session out of whose source slots a stream leaves.
type Sender struct {
	engine.Lane
	// Ops is the ring of prepared operations, one for each slot, unrolled by one batch so that any batch is contiguous.
	Ops          []transports.Op
	Head         int    // ring position of the next operation
	TakesReceive bool   // every operation consumes a receive of the peer
	First        uint64 // number of the phase's first operation: its slot follows
	Posted       int64  // data operations of this phase
	counted      int64  // of these, in the peak and the series
	remaining    int64  // of these, still to be posted
	Out          int    // operations posted and not known to be complete
	Messages     uint64 // on this session, operations and, of a flow, control messages
	Fenced       bool   // what proves that all arrived was posted
}

// NewSender prepares the ring of operations, all of them signalled.
func NewSender(base *engine.Lane) Sender {
	sh, k := base.Sh, base.Kind
	l := Sender{Lane: *base, TakesReceive: engine.TakesReceives(k)}
	l.Ops = make([]transports.Op, sh.Slots+Batch(sh))
	for i := range l.Ops {
		slot := i % sh.Slots
		op := transports.Op{Kind: k, Len: uint32(sh.Payload()), Flags: sh.Flags(), Slot: 1,
			Local: uint64(slot * sh.Stride()), Remote: uint64(sh.RxSlot(slot))}
		switch {
		case engine.IsAtomic(k):
			op.Local, op.Remote, op.Add = uint64(sh.RxSlot(slot)), uint64(sh.RxSlot(0)), 1
		case k == transports.KindRead:
			op.Local, op.Remote = uint64(sh.RxSlot(slot)), uint64(slot*sh.Stride())
		}
		l.Ops[i] = op
	}
	return l
}

// Push posts the next k operations, as many as the queue takes, and counts them.
func (l *Sender) Push(w *engine.Worker, k int) (n int, err error) {
	n, err = l.S.Post(l.Ops[l.Head : l.Head+k])
	l.Posted += int64(n)
	l.advance(n)
	if n < k && err != rdma.ErrQueueFull {
		return n, w.Lost(&l.Lane, "post "+l.Sh.Op, err)
	}
	return n, nil
}

func (l *Sender) advance(n int) {
	l.Out += n
	l.Messages += uint64(n)
	l.Head = (l.Head + n) % l.Sh.Slots
}

// ReadBehind posts a read whose completion proves that all before it arrived.
func ReadBehind(w *engine.Worker, l *engine.Lane, slot uint32) error {
	l.Pair[0] = transports.Op{Kind: transports.KindRead, Local: uint64(l.Sh.CtlRx(0)), Remote: uint64(l.Sh.CtlTx(0)),
		Len: 1, Slot: slot}
	return w.Post(l, l.Pair[:1])
}

// Batch is the most operations of one Post.
func Batch(sh *engine.Shape) int {
	k := min(sh.Depth, engine.BatchMax)
	if sh.PostList > 0 {
		k = min(k, sh.PostList)
	}
	return k
}

// Sent are the counts of senders, by QP.
func (l *Sender) Sent() engine.LaneCount { return engine.LaneCount{First: l.First, Count: l.Posted} }

type receiver struct {
	recvs    []transports.Op // prepared, a ring that is unrolled by a batch
	ring     int             // receives after which they repeat
	recvHead int
	unposted int // completed, and not yet posted again
	repostAt int // of these, worth a Post
}

const (
	// controlReceives are those for control messages both ways: at most three credits, start, fin, acknowledgement, and
	// those behind the last repost.
	controlReceives = engine.CtlSlots
	fewReceives     = controlReceives - 4 // with as many for data or fewer, each message has a credit of its own
	// Receives that are worth a Post: of a target, more gain nothing; of others, half of the slack.
	repostData     = 32
	repostControls = controlReceives / 2
)

// newReceiver prepares a receive for each slot, or for small messages alone.
func newReceiver(sh *engine.Shape, slots, target bool) receiver {
	r := receiver{ring: engine.CtlSlots, repostAt: min(repostControls, CreditEvery(sh))}
	if target {
		r.repostAt = min(repostData, CreditEvery(sh))
	}
	if slots {
		r.ring = sh.Slots
	}
	r.recvs = make([]transports.Op, r.ring+min(sh.RecvDepth, engine.BatchMax))
	for i := range r.recvs {
		slot := i % r.ring
		r.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(sh.CtlRx(slot % engine.CtlSlots)),
			Len: engine.CtlSize, Slot: uint32(slot)}
		if slots {
			r.recvs[i].Local, r.recvs[i].Len = uint64(sh.RxSlot(slot)), uint32(sh.Stride())
		}
	}
	return r
}

// CreditEvery is for how many messages a credit is.
func CreditEvery(sh *engine.Shape) int {
	if sh.Bidirectional && sh.RecvDepth <= fewReceives {
		return 1 // a slot that a control message took comes round before the half of them is taken
	}
	return max(1, sh.RecvDepth/2)
}

func (r *receiver) start(l *engine.Lane, n int) error {
	ops := make([]transports.Op, n)
	for i := range ops {
		ops[i] = r.recvs[i%r.ring]
	}
	r.recvHead = n % r.ring
	return l.PostAll(ops)
}

func (r *receiver) repost(w *engine.Worker, l *engine.Lane) error {
	for r.unposted > 0 {
		k := min(r.unposted, len(r.recvs)-r.recvHead)
		n, err := l.S.Post(r.recvs[r.recvHead : r.recvHead+k])
		r.unposted -= n
		r.recvHead = (r.recvHead + n) % r.ring
		if n < k {
			if err == rdma.ErrQueueFull {
				return nil
			}
			return w.Lost(l, "post recv", err)
		}
	}
	return nil
}

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
