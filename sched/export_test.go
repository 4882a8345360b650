package sched

import (
	"math"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// LookEvery is how many polls in vain find a connection that is over.
const LookEvery = lookEvery

// WithoutKeeper keeps the device's goroutine from starting, for tests that decide alone what happens when.
func WithoutKeeper(d rdma.Device) rdma.Device {
	if t, ok := d.(*device); ok { // fifo has none
		t.keep.stopped = true
	}
	return d
}

// Loosen makes a window loose, as on a fast path without urgency. due: a mark is wanted all the same.
func Loosen(x rdma.QP, due bool) {
	if q, ok := x.(*qp); ok && q.win.apart && !q.win.busy { // fifo has no window
		q.win.loose, q.win.want, q.win.askAt = true, due, math.MaxInt64
	}
}

// Loose reports whether it is. It may be called while the QP posts.
func Loose(x rdma.QP) bool {
	q, ok := x.(*qp)
	return ok && q.win.loose
}

// Widen gives a QP the window of a path of rate bytes a nanosecond, and Grown is how often that grew.
func Widen(x rdma.QP, rate float64) {
	q := x.(*qp)
	q.win.rate = rate
	q.win.resize()
}

func Grown(x rdma.QP) int { return x.(*qp).win.grown }

// Mailbox is the memory that the peer's tier writes.
func Mailbox(q rdma.QP) []byte { return q.(*qp).mailbox.box.Bytes() }

// Offer is what a tier that cuts sends adds to an application's private data.
func Offer(private []byte, addr uint64, rkey, room, shortest uint32) []byte {
	return (&offer{addr, rkey, room, shortest}).add(private)
}

// SplitOffer takes an offer apart again.
func SplitOffer(private []byte) (application []byte, addr uint64, rkey, room, shortest uint32, ok bool) {
	application, o := splitOffer(private)
	if o == nil {
		return application, 0, 0, 0, 0, false
	}
	return application, o.addr, o.rkey, o.room, o.shortest, true
}

// Descriptor and Notice are what two tiers write to each other, and where.
func Descriptor(turn, msg, size, at uint32) (b []byte, offset int) {
	b = make([]byte, descriptorLen)
	(&descriptor{turn, msg, size, at}).put(b)
	return b, descriptorOffset(turn)
}

func Notice(taken, shortest uint32) []byte {
	b := make([]byte, creditsLen)
	putDouble(b, taken)
	putDouble(b[8:], shortest)
	return b
}

// RingAt is where the ring begins in a mailbox.
const RingAt = mailboxHead

// GroupUnder is how many bytes the QPs of the group have under way, 0 without a group.
func GroupUnder(x rdma.QP) int64 {
	if g := x.(*qp).win.share.group; g != nil {
		return g.under[0].Load()
	}
	return 0
}

// BelowCQ is the completion queue that a tier's stands on.
func BelowCQ(c rdma.CQ) rdma.CQ { return c.(*cq).below }

// Users are how many queue pairs a completion queue serves.
func Users(c rdma.CQ) int { return len(c.(*cq).qps) }

// RingLen is how many requests below a QP can remember.
func RingLen(x rdma.QP) int { return len(x.(*qp).ring) }
