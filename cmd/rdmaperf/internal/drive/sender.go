package drive

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Sender is a session out of whose source slots a stream leaves.
type Sender struct {
	engine.Lane

	// Ops is the ring of prepared operations, unrolled by one batch so that any
	// batch is contiguous. Ring position r carries slot r mod Slots.
	Ops  []transports.Op
	Head int // ring position of the next operation

	TakesReceive bool   // every operation consumes a receive of the peer
	First        uint64 // number of the phase's first operation: its slot follows
	Posted       int64  // data operations of this phase
	counted      int64  // of these, in the peak and the series
	remaining    int64  // of these, still to be posted before the tail
	Out          int    // operations posted and not known to be complete
	Messages     uint64 // on this session, messages that consume a receive
	Fenced       bool   // the barrier was posted
}

// NewSender prepares the ring of operations.
func NewSender(base *engine.Lane) Sender {
	sh, k := base.Sh, base.Kind
	l := Sender{Lane: *base, TakesReceive: engine.TakesReceives(k)}
	l.Ops = make([]transports.Op, Ring(sh)+Batch(sh))
	for i := range l.Ops {
		r := i % Ring(sh)
		slot := r % sh.Slots
		op := transports.Op{Kind: k, Len: uint32(sh.Payload()), Flags: sh.Flags(),
			Local: uint64(slot * sh.Stride()), Remote: uint64(sh.RxSlot(slot))}
		switch {
		case engine.IsAtomic(k):
			op.Local, op.Remote, op.Add = uint64(sh.RxSlot(slot)), uint64(sh.RxSlot(0)), 1
		case k == transports.KindRead:
			op.Local, op.Remote = uint64(sh.RxSlot(slot)), uint64(slot*sh.Stride())
		}
		// A signalled operation's Slot says how many operations its completion
		// ends, so that the loop needs no table.
		if op.Slot = uint32(sh.Moderation); (r+1)%sh.Moderation != 0 {
			op.Flags |= transports.Unsignaled
		}
		l.Ops[i] = op
	}
	return l
}

// Ring is the number of prepared operations after which they repeat.
func Ring(sh *engine.Shape) int { return max(sh.Slots, sh.Moderation) }

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

// receiver is the receives for a stream's data.
type receiver struct {
	recvs    []transports.Op // prepared, a ring that is unrolled by a batch
	ring     int             // receives after which they repeat
	recvHead int
	unposted int // completed, and not yet posted again
	repostAt int // of these, worth a Post
}

// newReceiver prepares a receive for each slot.
func newReceiver(sh *engine.Shape) receiver {
	r := receiver{recvs: make([]transports.Op, sh.Slots+min(sh.RecvDepth, engine.BatchMax)), ring: sh.Slots,
		repostAt: min(32, CreditEvery(sh))} // arbitrary: halves the cost of one by one, and no more is gained above
	for i := range r.recvs {
		slot := i % sh.Slots
		r.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(sh.RxSlot(slot)), Len: uint32(sh.Stride()), Slot: uint32(slot)}
		if sh.Numbered() && sh.Kind() == transports.KindWrite { // which are told apart from what lands in the slots
			r.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(sh.CtlRx(slot % engine.CtlSlots)), Len: engine.CtlSize, Slot: uint32(slot)}
		}
	}
	return r
}

// CreditEvery is after how many taken receives the target tells the client.
func CreditEvery(sh *engine.Shape) int {
	if sh.Bidirectional && sh.RecvDepth <= fewReceives {
		return 1 // a slot that a notice took comes round before the half of them is taken
	}
	return max(1, sh.RecvDepth/2)
}

// start posts the first n receives.
func (r *receiver) start(l *engine.Lane, n int) error {
	ops := make([]transports.Op, n)
	for i := range ops {
		ops[i] = r.recvs[i%r.ring]
	}
	r.recvHead = n % r.ring
	return l.PostAll(ops)
}

// repost posts taken receives again, as many as there is room for.
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
