package bench

import (
	"encoding/binary"
	"errors"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// lane is one session with what a loop needs to drive it. It belongs to one
// worker; between phases to the goroutine that prepares them.
type lane struct {
	s     transports.Session
	sh    *Shape
	index int
	mem   []byte // the local window

	// Out of the shape, which spells them: the loops need them at once.
	kind  transports.Kind
	flags transports.OpFlags
	rx    [latencySlots]int // window slots of a ping-pong

	// ops is the ring of prepared operations, unrolled by one batch so that any
	// batch is contiguous. Ring position r carries slot r mod Slots.
	ops  []transports.Op
	head int // ring position of the next operation

	// recvs is the ring of prepared data receives, unrolled likewise.
	recvs    []transports.Op
	recvHead int

	// Initiator of a stream.
	takesReceive bool   // every operation consumes a receive of the peer
	first        uint64 // number of the phase's first operation: its slot follows
	posted       int64  // data operations of this phase
	high         int64  // of the high class of the starvation workload, which posted leaves out
	counted      int64  // of these, in the peak and the series
	remaining    int64  // of these, still to be posted before the tail
	out          int    // operations posted and not known to be complete
	messages     uint64 // on this session, messages that consume a receive
	acked        uint64 // of these, how many receives the peer has posted again
	tail         bool   // the last operation of the phase was posted
	fenced       bool   // the barrier was posted
	lull         int64  // ns for which its worker may sleep while nothing comes

	// Target of a stream.
	repostAt  int    // taken receives worth a Post
	seen      uint64 // receives completed
	unposted  int    // of these, not yet posted again
	announced uint64 // last credit sent
	owed      bool   // a credit is due now
	ctlFree   int    // free credit buffers
	ctlNext   int

	// Ping-pong.
	ref   rdma.Buffer      // what the source region should hold; no transport knows it
	iter  uint64           // messages of this phase, from 1
	trips []trip           // under way, or not looked at yet
	came  int              // of these, answered by a message
	again []transports.Op  // receives to be posted again
	pair  [2]transports.Op // operations under construction
	next  uint32           // slot of the receive that the next message takes
	steps []transports.Volley

	hol    *holLane    // head-of-line only
	duplex *duplexLane // bidirectional streams only

	// Of the patterns that leave and arrive.
	seedOut, seedIn uint64
}

// newLane prepares the rings of a session whose window has the shape's size.
func newLane(s transports.Session, sh *Shape, index int) (*lane, error) {
	k := sh.kind()
	l := &lane{s: s, sh: sh, index: index, mem: s.Local(), kind: k, flags: sh.flags(), ctlFree: ctlSlots,
		seedOut: sh.Seed, seedIn: sh.Seed, takesReceive: k == transports.KindSend || k == transports.KindWriteImm,
		repostAt: min(32, sh.creditEvery())} // arbitrary: halves the cost of one by one, and no more is gained above
	if sh.Workload == WorkloadLatency {
		for i := range sh.Slots {
			l.rx[i] = sh.rxSlot(i)
		}
		l.trips, l.steps = make([]trip, sh.volleySteps()), make([]transports.Volley, sh.volleySteps())
		var err error
		if l.ref, err = rdma.Alloc(sh.rxOff()); err != nil {
			return nil, failed("set up session", err)
		}
	} else {
		l.prepareOps()
	}
	if sh.Workload == WorkloadHOL {
		var err error
		if l.ref, err = rdma.Alloc(sh.ProbeSlots * sh.probeStride()); err != nil {
			return nil, failed("set up session", err)
		}
		l.prepareHOL()
		return l, nil
	}
	l.prepareRecvs()
	if sh.Bidirectional {
		l.prepareDuplex()
	}
	return l, nil
}

// close ends the session.
func (l *lane) close() error { return errors.Join(l.s.Close(), l.ref.Free()) }

func (l *lane) prepareOps() {
	sh := l.sh
	k := sh.kind()
	l.ops = make([]transports.Op, sh.ring()+sh.batch())
	for i := range l.ops {
		r := i % sh.ring()
		slot := r % sh.Slots
		op := transports.Op{Kind: k, Len: uint32(sh.Size), Flags: sh.flags(),
			Local: uint64(slot * sh.stride()), Remote: uint64(sh.rxSlot(slot))}
		switch {
		case isAtomic(k):
			op.Local, op.Remote, op.Add = uint64(sh.rxSlot(slot)), uint64(sh.rxSlot(0)), 1
		case k == transports.KindRead:
			op.Local, op.Remote = uint64(sh.rxSlot(slot)), uint64(slot*sh.stride())
		}
		// A signalled operation's Slot says how many operations its completion
		// ends, so that the loop needs no table.
		if op.Slot = uint32(sh.Moderation); (r+1)%sh.Moderation != 0 {
			op.Flags |= transports.Quiet
		}
		l.ops[i] = op
	}
}

func (l *lane) prepareRecvs() {
	sh := l.sh
	l.recvs = make([]transports.Op, sh.Slots+min(sh.RecvDepth, batchMax))
	for i := range l.recvs {
		slot := i % sh.Slots
		l.recvs[i] = transports.Op{Kind: transports.KindRecv, Local: uint64(sh.rxSlot(slot)), Len: uint32(sh.stride()), Slot: uint32(slot)}
	}
}

// seek starts a phase of a stream. Messages go on counting from the phase before,
// because the peer's receives lie in the ring in that order. Operations of a
// moderation group that began before the phase count as outstanding until the
// group's completion, which stands for all of them.
func (l *lane) seek() {
	l.first = 0
	if l.takesReceive {
		l.first = l.messages
	}
	l.head = int(l.first % uint64(l.sh.ring()))
	l.out = l.head % l.sh.Moderation
	l.posted, l.tail, l.fenced = 0, false, false
	l.counted = 0
}

// ctlRecv is the receive for one credit.
func (l *lane) ctlRecv(i int) transports.Op {
	return transports.Op{Kind: transports.KindRecv, Local: uint64(l.sh.ctlRx(i)), Len: ctlSize, Slot: uint32(i)}
}

// credit reads a credit message.
func (l *lane) credit(i uint32) uint64 {
	return binary.LittleEndian.Uint64(l.mem[l.sh.ctlRx(int(i)):])
}

// source is where message number iter of a ping-pong lies in the source region.
func (l *lane) source(iter uint64) int { return int(iter%latencyShifts) * l.sh.shift() }

// at is the window offset of message iter's slot.
func (l *lane) at(iter uint64) int { return l.rx[iter&uint64(l.sh.Slots-1)&(latencySlots-1)] }

// stampOf is the value of the last byte of message iter: never the one of a
// message that used the same slot up to 254 messages before, and never zero.
func stampOf(iter uint64) byte { return byte(iter%255) + 1 }

// stamp marks the next message of a ping-pong and returns where it lies. Both
// the source and the reference get the marks, so that nothing has to be restored.
func (l *lane) stamp() int {
	l.iter++
	off, n, ref := l.source(l.iter), l.sh.Size, l.ref.Bytes()
	if n > 8 {
		binary.LittleEndian.PutUint64(l.mem[off:], l.iter)
		binary.LittleEndian.PutUint64(ref[off:], l.iter)
	}
	l.mem[off+n-1] = stampOf(l.iter)
	ref[off+n-1] = stampOf(l.iter)
	return off
}
