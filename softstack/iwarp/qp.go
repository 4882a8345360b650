package iwarp

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

type phase uint8

const (
	phaseIdle   phase = iota // no stream yet
	phaseOpen                // full operation
	phaseLinger              // our last octets and the peer's are drained, then closed
	phaseClosed              // no stream any more
)

type sqEntry struct {
	wr   rdma.SendWR
	end  uint64 // stream octets framed when its last one was (send, write)
	done bool   // read: the response is here; local_inv: executed
}

// qp is one end of a connection. mu guards everything below it.
type qp struct {
	dev  *Device
	num  uint32
	cfg  rdma.QPConfig
	send *cq
	recv *cq
	srq  *srq

	activity  atomic.Uint32 // polls and posts by the application, for the background goroutine
	idlePolls atomic.Uint32 // polls in a row that brought nothing, up to idleAfter
	freed     atomic.Uint32 // send queue places below this index may be posted to again
	member    uint32        // place in send.members

	mu     sync.Mutex
	state  rdma.QPState
	phase  phase
	closed bool
	busy   *attempt // Connect or Accept at work, or nil

	// Send queue: [head, next) begun, [next, tail) waiting.
	sq                     []sqEntry
	sqHead, sqNext, sqTail uint32
	inline                 []byte // MaxInline octets an entry
	reads                  fifo   // send queue indexes of reads and atomics that wait for a response
	ord                    int

	// Receive queue, or the receive taken from the SRQ for the message in progress.
	rq        recvRing
	cur       rdma.RecvWR
	curUsed   bool // cur belongs to a message in progress
	msgOp     rdmap.Opcode
	msgLen    uint32      // octets of it delivered so far
	recvFault rdma.Status // why cur failed, when it did; else it is flushed

	// Inbound reads and atomics to be answered.
	irq fifo
	req []inbound // ring beside irq, same size
	ird int
	ops rdma.OpSet // what may be posted on this connection

	conn  stream.Conn
	tx    txState
	rx    rxState
	cache [4]*mr // recent registrations, by the key's low bits

	rtrRead  bool           // the RTR read is outstanding, as rtrIndex in reads
	why      rdmap.TermCode // what ended the stream, sent or received; 0 for none
	fin      bool           // FIN was sent
	writeIn  [2]bool        // the poller watches for room as well
	deadline time.Time      // of lingering
	seen     uint32         // activity at the last look; the background goroutine's
	joined   [2]atomic.Bool // socket is in the send and receive CQ's poller; written with mu held

	counts    Counts
	watched   atomic.Bool // in the background goroutine's watch list
	roomArmed bool        // the background goroutine's epoll reports room too
	eof       bool        // the peer's FIN was read while lingering
}

// fifo is a ring of small integers of a fixed power-of-two size.
type fifo struct {
	ring       []uint32
	head, tail uint32
}

// powerOfTwo is the least one that is n or more; n is 1 or more.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

func newFIFO(n int) fifo {
	return fifo{ring: make([]uint32, powerOfTwo(n))}
}

func (f *fifo) len() int      { return int(f.tail - f.head) }
func (f *fifo) push(v uint32) { f.ring[f.tail&uint32(len(f.ring)-1)] = v; f.tail++ }
func (f *fifo) first() uint32 { return f.ring[f.head&uint32(len(f.ring)-1)] }
func (f *fifo) slot() uint32  { return f.head & uint32(len(f.ring)-1) }

// NewQP makes a queue pair in INIT.
func (d *Device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	var undo []func()
	fail := func(err error) (rdma.QP, error) {
		for _, f := range slices.Backward(undo) {
			f()
		}
		return nil, &rdma.OpError{Op: "create qp", Err: err}
	}
	send, ok1 := cfg.SendCQ.(*cq)
	recv, ok2 := cfg.RecvCQ.(*cq)
	if !ok1 || !ok2 || send.dev != d || recv.dev != d {
		return fail(fmt.Errorf("completion queues of this device are required: %w", rdma.ErrInvalid))
	}
	cfg.SendDepth, cfg.RecvDepth = cmp.Or(cfg.SendDepth, 1), cmp.Or(cfg.RecvDepth, 1)
	if cfg.SendDepth < 0 || cfg.RecvDepth < 0 || cfg.SendDepth > maxQPWR || cfg.RecvDepth > maxQPWR ||
		cfg.MaxInline < 0 || cfg.MaxInline > maxInline {
		return fail(fmt.Errorf("send depth %d, receive depth %d, inline %d: outside the limits: %w", cfg.SendDepth,
			cfg.RecvDepth, cfg.MaxInline, rdma.ErrInvalid))
	}
	q := &qp{dev: d, cfg: cfg, send: send, recv: recv, state: rdma.QPInit, ops: d.caps.Ops}
	if cfg.SRQ != nil {
		s, ok := cfg.SRQ.(*srq)
		if !ok || s.dev != d || s.pd != cfg.PD {
			return fail(fmt.Errorf("shared receive queue of another device or domain: %w", rdma.ErrInvalid))
		}
		if err := s.use(1); err != nil {
			return fail(err)
		}
		q.srq = s
		undo = append(undo, func() { s.use(-1) })
	} else {
		q.rq = newRecvRing(cfg.RecvDepth)
	}
	if err := d.usePD(cfg.PD, 1); err != nil {
		return fail(err)
	}
	undo = append(undo, func() { d.usePD(cfg.PD, -1) })
	d.mu.Lock()
	q.num = d.nextQP // before pollers see it; one that comes to nothing leaves a gap
	d.nextQP++
	d.mu.Unlock()
	if err := send.attach(q); err != nil {
		return fail(err)
	}
	undo = append(undo, func() { send.detach(q) })
	if err := recv.attach(q); err != nil {
		return fail(err)
	}
	size := powerOfTwo(cfg.SendDepth)
	q.sq = make([]sqEntry, size)
	q.inline = make([]byte, size*cfg.MaxInline)
	d.mu.Lock()
	d.qps[q.num] = q
	d.mu.Unlock()
	return q, nil
}

func (q *qp) Num() uint32 { return q.num }

func (q *qp) State() rdma.QPState {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state
}

// setState moves along rdma.CanTransition, with what entering a state brings. The caller holds q.mu.
func (q *qp) setState(s rdma.QPState) {
	if q.state == s || !rdma.CanTransition(q.state, s) {
		return
	}
	q.state = s
	if s == rdma.QPErr {
		q.flushAll()
		if q.srq != nil {
			q.dev.raise(rdma.EventLastWQEReached, q.num, 0)
		}
	}
}

func (q *qp) PostSend(wrs []rdma.SendWR) (int, error) {
	q.mu.Lock()
	q.active()
	n := 0
	var err error
	for n < len(wrs) {
		if err = q.enqueue(&wrs[n]); err != nil {
			break
		}
		n++
	}
	if q.state == rdma.QPErr {
		q.flushAll()
	} else {
		q.transmit()
		q.wantRoom()
		if q.tx.unsent() {
			q.idlePolls.Store(0)
		}
	}
	q.mu.Unlock()
	return n, err
}

// active counts a poll or post. Of two at once one may be lost, which the background goroutine does not notice.
func (q *qp) active() { q.activity.Store(q.activity.Load() + 1) }

// wantRoom has a sleeper in Wait or the background goroutine go on when the socket has room again.
func (q *qp) wantRoom() {
	if !q.tx.blocked && !q.tx.more || q.phase != phaseOpen {
		return
	}
	q.roomInPollers()
	if !q.roomArmed && !q.watched.Load() {
		q.dev.bg.arm(q)
	}
}

func (q *qp) enqueue(wr *rdma.SendWR) error {
	if q.closed {
		return rdma.ErrClosed
	}
	if !q.state.CanPostSend() {
		return rdma.ErrState // IBTA C10-96
	}
	if !q.ops.Has(wr.Op) {
		return q.refused(wr.Op)
	}
	if wr.NumSGE > rdma.MaxSGE {
		return rdma.ErrInvalid
	}
	size := wr.Len()
	if size > maxMessage {
		return rdma.ErrInvalid
	}
	if particularOps.Has(wr.Op) {
		if err := checkParticular(wr, size); err != nil {
			return err
		}
	}
	if q.sqTail-q.freed.Load() >= uint32(q.cfg.SendDepth) {
		return rdma.ErrQueueFull
	}
	slot := q.sqTail & uint32(len(q.sq)-1)
	e := &q.sq[slot]
	e.wr = *wr
	e.done = false
	if wr.Flags&rdma.Inline != 0 {
		if size > uint64(q.cfg.MaxInline) {
			return rdma.ErrInvalid
		}
		dst := q.inlineAt(slot)
		for i := range int(wr.NumSGE) {
			src := rdma.BufferAt(wr.SGE[i].Addr, int(wr.SGE[i].Len))
			if src == nil && wr.SGE[i].Len > 0 {
				return rdma.ErrInvalid
			}
			dst = dst[copy(dst, src):]
		}
	}
	q.sqTail++
	if awaited.Has(wr.Op) {
		q.idlePolls.Store(0)
	}
	return nil
}

// awaited are the requests that the peer answers: a QP that has posted one is not quiet.
var awaited = rdma.Ops(rdma.OpRead, rdma.OpFetchAdd, rdma.OpCmpSwap)

func (q *qp) inlineAt(slot uint32) []byte {
	n := uint32(q.cfg.MaxInline)
	return q.inline[slot*n : slot*n+n]
}

func (q *qp) PostRecv(wrs []rdma.RecvWR) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return 0, rdma.ErrClosed
	case q.srq != nil:
		return 0, rdma.ErrInvalid // ibv_post_recv(3)
	}
	n, err := q.rq.post(wrs)
	if q.state == rdma.QPErr {
		q.flushAll()
	}
	return n, err
}

func (q *qp) progress() {
	defer onepeer.Recover(q.fault)
	q.receive()
	if q.phase == phaseOpen {
		q.transmit()
	}
}

// PingPong is not declared: polls do the stack's work, and a call more is nothing to that.
func (q *qp) PingPong([]rdma.PingPongStep, []rdma.WC) (int, error) { return 0, rdma.ErrNotSupported }

func (q *qp) Drain() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != rdma.QPRTS {
		return rdma.ErrState
	}
	q.setState(rdma.QPSQD)
	q.checkDrained()
	return nil
}

func (q *qp) checkDrained() {
	// A message that is only partly framed has begun, though sqNext still names it.
	if q.state == rdma.QPSQD && q.sqHead == q.sqNext && q.tx.src != srcSQ && !q.tx.drained {
		q.tx.drained = true
		q.dev.raise(rdma.EventSQDrained, q.num, 0)
	}
}

func (q *qp) Resume() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state != rdma.QPSQD {
		return rdma.ErrState
	}
	q.setState(rdma.QPRTS)
	q.tx.drained = false
	q.transmit()
	q.wantRoom()
	return nil
}

// Fail moves the QP to ERR and ends the stream in order, without a Terminate: it is no fault of the peer.
func (q *qp) Fail() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return rdma.ErrClosed
	}
	q.shut()
	return nil
}

// shut ends the stream after what was framed, and moves the QP to ERR.
func (q *qp) shut() {
	q.linger()
	q.setState(rdma.QPErr)
}

// Disconnect sends what was posted, if the peer or with OnAck its stack takes it in time, and ends the connection.
func (q *qp) Disconnect(ctx context.Context) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return rdma.ErrClosed
		}
		if q.phase != phaseOpen {
			q.setState(rdma.QPErr)
			q.mu.Unlock()
			return nil
		}
		q.progress()
		idle := q.sqNext == q.sqTail && q.tx.empty() && q.reads.len() == 0 && !q.needsPolling() ||
			q.state == rdma.QPSQD || !q.tx.start.MaySend()
		if idle || ctx.Err() != nil || q.phase != phaseOpen {
			q.shut()
			q.mu.Unlock()
			if !idle {
				return ctx.Err()
			}
			return nil
		}
		conn, bits := q.conn, stream.Readable
		if q.tx.blocked || q.tx.more {
			bits |= stream.Writable
		}
		slice := waitSlice
		if q.needsPolling() { // nothing tells of an acknowledgement
			slice = ackSlice
		}
		q.mu.Unlock()
		conn.Await(bits, sliceOf(ctx, slice))
	}
}

// Close destroys the QP.
func (q *qp) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	for q.busy != nil { // a connection being made is given up first
		a := q.busy
		q.mu.Unlock()
		a.cancel()
		<-a.done
		q.mu.Lock()
	}
	q.shut()
	q.mu.Unlock()
	q.send.detach(q)
	q.recv.detach(q)
	if q.srq != nil {
		q.srq.use(-1)
	}
	q.dev.usePD(q.cfg.PD, -1)
	q.dev.mu.Lock()
	q.counts.Framed = q.tx.moved
	q.dev.ended.add(q.counts) // nothing touches a closed QP's stream
	delete(q.dev.qps, q.num)
	q.dev.mu.Unlock()
	return nil
}

// find resolves a key of any domain, which the caller checks: local and remote use answer differently.
func (q *qp) find(stag uint32) *mr {
	c := &q.cache[stag&3]
	if m := *c; m != nil && m.stag == stag && m.valid.Load() {
		return m
	}
	m := q.dev.keys.find(stag)
	if m == nil || !m.valid.Load() {
		return nil
	}
	*c = m
	return m
}

// local resolves one SGE, for writing with want LocalWrite; nil: it is not allowed.
func (q *qp) local(s *rdma.SGE, want rdma.Access) []byte {
	m := q.find(s.LKey)
	if m == nil || m.pd != q.cfg.PD || !m.access.Has(want) {
		return nil
	}
	return m.at(s.Addr, s.Len)
}

// forget makes the QP stop touching m's memory. It is called after m became invalid.
func (q *qp) forget(m *mr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, c := range q.cache {
		if c == m {
			q.cache[i] = nil
		}
	}
	if q.phase != phaseOpen {
		return
	}
	q.copyReferenced() // what was sent of it stays right
	// The message in progress lost its memory: nothing sane can follow it.
	if q.rx.touches(m) {
		q.terminate(q.rx.seg.revoked())
	} else if q.tx.touches(m) {
		q.terminate(rdmap.TermDDPLocal, nil)
	}
}
