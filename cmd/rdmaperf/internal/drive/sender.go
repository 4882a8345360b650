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
	Ops  []transports.Op
	Head int // ring position of the next operation

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

	// fewReceives: with as many for data or fewer, each message has a credit of its own.
	fewReceives = controlReceives - 4

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
