package tcp

import (
	"math/bits"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const (
	// sendStage holds headers and small payloads of one batch.
	sendStage = 64 << 10
	// copyMax bytes and less are copied behind their header: a further piece of the gather list costs more.
	copyMax = 4 << 10
	// batchBytes ends a batch: a raw system call should be short.
	batchBytes = 1 << 20
	// turnBytes ends a turn at sending: a peer that receives as fast as we send would else never find us receiving, and
	// its own stream would stand still. Half of batchBytes, arbitrary.
	turnBytes = 512 << 10
)

type outOp struct {
	transports.Op
	end      uint64 // value of outbound.sent at which the kernel has all of it
	tag      uint32 // of a read
	answered bool
}

// outbound is ops and answers as bytes: ops[head:next] are encoded, ops[next:tail] wait, iov[first:last] is under way.
type outbound struct {
	win   []byte
	ops   ring[outOp]
	next  uint32 // first op that is not encoded
	stage []byte
	used  int

	iov         []unix.Iovec
	first, last int
	joined      bool // the last piece ends at stage[used]

	queued  uint64 // bytes encoded since the start
	sent    uint64 // of these, taken by the kernel
	readTag uint32
	answer  bool // the next turn is an answer's
}

func newOutbound(win []byte, depth int) outbound {
	return outbound{win: win, ops: newRing[outOp](depth), stage: make([]byte, sendStage),
		iov: make([]unix.Iovec, stream.MaxVec)}
}

func (o *outbound) onWire() bool             { return o.first != o.last }
func (o *outbound) waiting(in *inbound) bool { return o.next != o.ops.tail || !in.resps.empty() }

// sendable tells that the socket alone decides whether more can leave.
func (o *outbound) sendable(in *inbound) bool {
	return o.onWire() || !in.resps.empty() || o.ready(in) != nil
}

// roomy tells that one more message of any kind can be encoded.
func (o *outbound) roomy() bool {
	return o.last+2 <= len(o.iov) && len(o.stage)-o.used >= headerLen+copyMax && o.queued-o.sent < batchBytes
}

// encode fills the batch with answers and ops in turn, so that neither starves the other.
func (o *outbound) encode(in *inbound) {
	for o.roomy() {
		op := o.ready(in)
		if !in.resps.empty() && (o.answer || op == nil) {
			r := in.resps.front()
			o.put(header{len: r.len, tag: r.tag, kind: wireReadResp}, o.win[r.off:r.off+uint64(r.len)])
			in.resps.pop()
			o.answer = false
			continue
		}
		if op == nil {
			return
		}
		o.answer = true
		o.encodeOp(op, in)
	}
}

// ready is the next op, or nil when there is none or it must wait for the answers of earlier reads.
func (o *outbound) ready(in *inbound) *outOp {
	if o.next == o.ops.tail {
		return nil
	}
	op := o.ops.at(o.next)
	if o.held(&op.Op, in) {
		return nil
	}
	return op
}

func (o *outbound) held(op *transports.Op, in *inbound) bool {
	if op.Flags&transports.Fence != 0 && !in.reads.empty() {
		return true
	}
	return op.Kind == transports.KindRead && in.reads.full()
}

func (o *outbound) encodeOp(op *outOp, in *inbound) {
	h := header{len: op.Len}
	payload := o.win[op.Local : op.Local+uint64(op.Len)]
	switch op.Kind {
	case transports.KindSend:
		h.kind = wireSend
	case transports.KindWrite:
		h.kind, h.off = wireWrite, op.Remote
	case transports.KindWriteImm:
		h.kind, h.off, h.tag = wireWriteImm, op.Remote, op.Imm
	case transports.KindRead:
		o.readTag++
		op.tag, op.answered = o.readTag, false
		*in.reads.push() = op
		h.kind, h.off, h.tag = wireReadReq, op.Remote, op.tag
		payload = nil
	}
	o.put(h, payload)
	op.end = o.queued
	o.next++
}

// put appends one message to the batch; roomy must hold.
func (o *outbound) put(h header, payload []byte) {
	b := o.stage[o.used:]
	h.put(b)
	n := headerLen
	o.queued += uint64(headerLen + len(payload))
	if len(payload) <= copyMax {
		n += copy(b[headerLen:], payload)
		payload = nil
	}
	o.used += n
	if o.joined {
		o.iov[o.last-1].Len += uint64(n)
	} else {
		o.iov[o.last] = unix.Iovec{Base: &b[0], Len: uint64(n)}
		o.last++
		o.joined = true
	}
	if payload != nil {
		o.iov[o.last] = unix.Iovec{Base: &payload[0], Len: uint64(len(payload))}
		o.last++
		o.joined = false
	}
}

// flush encodes and sends until the socket is full, the turn is over, or the rest waits for reads.
func (o *outbound) flush(c stream.Conn, in *inbound) error {
	for begun := o.sent; o.sent-begun < turnBytes; {
		o.encode(in)
		var n int
		var err error
		switch o.last - o.first {
		case 0:
			return nil
		case 1:
			v := &o.iov[o.first]
			n, err = c.Send(unsafe.Slice(v.Base, v.Len))
		default:
			n, err = c.Sendv(o.iov[o.first:o.last])
		}
		if err == stream.ErrAgain {
			return nil
		}
		if err != nil {
			return err
		}
		// A short count means a full socket: asking again now would find no room.
		if !o.advance(uint64(n)) || !o.waiting(in) {
			return nil
		}
	}
	return nil
}

func (o *outbound) advance(n uint64) bool {
	o.sent += n
	if o.sent == o.queued {
		o.first, o.last, o.used, o.joined = 0, 0, 0, false
		return true
	}
	for n > 0 {
		v := &o.iov[o.first]
		if n < v.Len {
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
			v.Len -= n
			break
		}
		n -= v.Len
		o.first++
	}
	return false
}

func (o *outbound) done(op *outOp) bool {
	if op.Kind == transports.KindRead {
		return op.answered
	}
	return op.end <= o.sent
}

func (o *outbound) retire(dst []transports.Done) int {
	n := 0
	for o.finished() {
		op := o.ops.front()
		if op.Flags&transports.Unsignaled == 0 {
			if n == len(dst) {
				break
			}
			dst[n] = transports.Done{Slot: op.Slot, Len: op.Len, Kind: op.Kind}
			n++
		}
		o.ops.pop()
	}
	return n
}

func (o *outbound) finished() bool { return o.ops.head != o.next && o.done(o.ops.front()) }

// drop forgets the oldest op of a session that is over: what was sent behind an op that failed counts as failed.
func (o *outbound) drop() {
	o.ops.pop()
	o.next = o.ops.head
}

// ring is a queue that allocates nothing after newRing. Indices run free and wrap; the buffer is a power of two.
type ring[T any] struct {
	buf        []T
	head, tail uint32
	depth      uint32
}

func newRing[T any](depth int) ring[T] {
	return ring[T]{buf: make([]T, 1<<bits.Len(uint(max(depth, 1)-1))), depth: uint32(depth)}
}

func (r *ring[T]) len() int       { return int(r.tail - r.head) }
func (r *ring[T]) empty() bool    { return r.tail == r.head }
func (r *ring[T]) full() bool     { return r.tail-r.head >= r.depth }
func (r *ring[T]) at(i uint32) *T { return &r.buf[i&uint32(len(r.buf)-1)] }

// front is the oldest element; the ring must not be empty.
func (r *ring[T]) front() *T { return r.at(r.head) }

// push makes room at the end; the ring must not be full. The element holds what its place held before.
func (r *ring[T]) push() *T {
	p := r.at(r.tail)
	r.tail++
	return p
}

func (r *ring[T]) pop() { r.head++ }
