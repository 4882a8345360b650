package fused

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type event uint8

const (
	evMessage event = iota // a whole message, or the end
	evHeader               // the peer's header, or the end
	evWindow               // leave to send, or the end
	numEvents
)

// waiter is a goroutine that waits for an event. ch is nil until one slept.
type waiter struct {
	ch     chan struct{}
	handed bool // the role of the reader was handed to it; guarded by the client's lead mutex
}

type message struct {
	buf     *[]byte // grows with what has come, up to total
	total   int
	got     int
	granted int // bytes of it that were given back to the peer's window
	packed  bool
	pool    mem.BufferPool // that buf goes back to, when its length does not show it
}

func (m *message) memory() mem.BufferPool {
	if m.pool != nil {
		return m.pool
	}
	return poolFor(len(*m.buf))
}

func (m *message) sink() bool { return m.pool != nil }

func (m *message) whole() bool { return m.got == m.total }

// growth bounds a message's buffer by a multiple of what came: peers promise memory on every stream for nothing. A
// megabyte gets all of its memory with the first frame.
const growth = 16

func (m *message) room(n int) {
	if m.got+n <= len(*m.buf) {
		return
	}
	size := min(m.total, growth*(m.got+n))
	b := poolFor(size).Get(size)
	copy(*b, (*m.buf)[:m.got])
	poolFor(len(*m.buf)).Put(m.buf)
	m.buf = b
}

// stream is one call, seen from either side. One goroutine sends and one receives at a time, as in gRPC.
type stream struct {
	s  *session
	id uint32

	mu                      sync.Mutex
	queue                   []*message // the last one may be incomplete
	inLeft                  int        // bytes the peer may still send
	ungranted               int        // bytes consumed and not yet given back
	outLeft                 int        // bytes this side may still send
	hasHeader               bool
	packer                  string // compressor the peer named
	header                  metadata.MD
	status                  *status.Status // from the trailer
	trailer                 metadata.MD
	headerWire, trailerWire int   // bytes that came, for stats handlers
	ended                   bool  // the peer sends no more
	err                     error // the stream is over for another reason
	dropped                 bool  // what still comes is dropped
	waiters                 [numEvents]waiter

	opened  bool // an open frame was given to the write queue; the caller's
	watched bool // the end of the call's context fails the stream by itself

	turn uint64 // of the inline handler while a reader runs it; the handler's
}

func newStream(s *session, id uint32) *stream {
	return &stream{s: s, id: id, inLeft: s.window, outLeft: s.peerWindow}
}

// signal wakes the waiter, if the wait is over. The caller holds mu.
func (st *stream) signal(ev event) {
	if ch := st.waiters[ev].ch; ch != nil && st.over(ev) {
		select {
		case ch <- struct{}{}:
			st.s.out.roused.Add(1)
		default:
		}
	}
}

func (st *stream) signalAll() {
	for ev := range numEvents {
		st.signal(ev)
	}
}

func (st *stream) sleeper(ev event) *waiter {
	st.mu.Lock()
	defer st.mu.Unlock()
	w := &st.waiters[ev]
	if w.ch == nil {
		w.ch = make(chan struct{}, 1)
	}
	return w
}

func (st *stream) ready(ev event) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.over(ev)
}

// over is true when the wait for ev is over. The caller holds mu.
func (st *stream) over(ev event) bool {
	switch ev {
	case evMessage:
		// Bytes to give back end the wait, too: only the consumer sends windows.
		return st.err != nil || st.ended || len(st.queue) > 0 && (st.queue[0].whole() ||
			st.queue[0].got-st.queue[0].granted >= st.s.window/4)
	case evHeader:
		return st.err != nil || st.ended || st.hasHeader
	default:
		// A client that has ended its side still takes the response.
		return st.err != nil || st.ended && st.s.client || st.outLeft > 0
	}
}

// fail ends the stream for a reason of this side.
func (st *stream) fail(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.err == nil {
		st.err = err
	}
	st.signalAll()
}

// retract ends the stream as one that never reached the peer, also after the end of the connection.
func (st *stream) retract(err notSent) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	st.err = err
	st.signalAll()
}

func (st *stream) unknownToPeer() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, not := st.err.(notSent)
	return not || !st.opened
}

// deliver takes a frame of the peer. An error is a breach of the protocol.
func (st *stream) deliver(f *frame) (err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return fmt.Errorf("%w: behind the end of stream %d", errFrame, st.id)
	}
	if f.has(fHeader) {
		if st.hasHeader {
			return fmt.Errorf("%w: second header of stream %d", errFrame, st.id)
		}
		if st.packer, st.header, err = parseHeader(f.header); err != nil {
			return err
		}
		st.headerWire = headerLen + len(f.header)
		st.hasHeader = true
	}
	if f.has(fData) {
		add := st.grow
		if f.has(fSink) {
			add = st.arrive
		}
		if err := add(f); err != nil {
			return err
		}
	}
	if f.has(fTrailer) {
		if st.status, st.trailer, err = parseTrailer(f.trailer); err != nil {
			return err
		}
		st.trailerWire = headerLen + len(f.trailer)
	}
	if f.has(fEnd) {
		if n := len(st.queue); n > 0 && !st.queue[n-1].whole() {
			// A server whose call was ended stops at any place; its status says so.
			if st.status.Code() == codes.OK {
				return fmt.Errorf("%w: stream %d ends inside a message", errFrame, st.id)
			}
			st.queue = st.queue[:n-1]
		}
		st.ended = true
	}
	st.signalAll()
	return nil
}

func (st *stream) grow(f *frame) error {
	size := len(f.data) + f.placed
	if st.inLeft -= size; st.inLeft < 0 {
		return fmt.Errorf("%w: stream %d exceeds its window", errFrame, st.id)
	}
	if st.dropped || st.err != nil {
		return nil
	}
	if f.has(fFirst) {
		if err := st.first(f); err != nil || st.err != nil {
			return err
		}
		n := min(f.total, growth*len(f.data))
		st.queue = append(st.queue, &message{buf: poolFor(n).Get(n), total: f.total, packed: f.has(fPacked)})
	}
	if len(st.queue) == 0 {
		return fmt.Errorf("%w: stream %d continues no message", errFrame, st.id)
	}
	m := st.queue[len(st.queue)-1]
	if m.got+size > m.total || m.whole() && !f.has(fFirst) {
		return fmt.Errorf("%w: message of stream %d is longer than it said", errFrame, st.id)
	}
	m.room(size)
	copy((*m.buf)[m.got:], f.data)
	m.got += size
	return nil
}

// first checks the beginning of a message. One that is too long ends the stream alone. The caller holds mu.
func (st *stream) first(f *frame) error {
	if n := len(st.queue); n > 0 && !st.queue[n-1].whole() {
		return fmt.Errorf("%w: stream %d begins a message inside another", errFrame, st.id)
	}
	if f.total > st.s.maxRecv {
		st.err = status.Errorf(codes.ResourceExhausted, "fused: received message larger than max (%d vs. %d)", f.total,
			st.s.maxRecv)
	}
	return nil
}

// place is the message that the next n bytes of data continue; nil when they may not. The reader may write into it
// without the lock: nobody takes a message that is not whole.
func (st *stream) place(n int) *message {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended || st.dropped || st.err != nil || st.inLeft < n || len(st.queue) == 0 {
		return nil
	}
	m := st.queue[len(st.queue)-1]
	if m.got+n > m.total {
		return nil
	}
	m.room(n)
	return m
}

// next takes a whole message off the queue, and returns what to give back to the peer. Of a message that waits to
// become whole that is everything: it may be longer than the window.
func (st *stream) next() (m *message, grant int, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.queue) > 0 {
		m = st.queue[0]
		st.ungranted += m.got - m.granted
		m.granted = m.got
		if m.whole() {
			st.queue = st.queue[1:]
		} else {
			m = nil
		}
	}
	if st.ungranted >= st.s.window/4 && !st.ended {
		grant, st.ungranted = st.ungranted, 0
		st.inLeft += grant
	}
	if m == nil {
		switch {
		case st.err != nil:
			err = st.err
		case st.ended:
			err = io.EOF
		}
	}
	return m, grant, err
}

// receive waits for the next message. It returns io.EOF when the peer sends no more.
func (st *stream) receive(ctx context.Context) (*message, error) {
	for {
		m, grant, err := st.next()
		if grant > 0 {
			var b [4]byte
			binary.LittleEndian.PutUint32(b[:], uint32(grant))
			if err := st.s.send(kindWindow, 0, st.id, nil, 0, b[:]); err != nil && m == nil {
				return nil, err
			}
		}
		if m != nil && !(m.sink() && st.s.regrants(m.total)) {
			st.s.offer(m.total)
		}
		if m != nil || err != nil {
			return m, err
		}
		if err := st.s.await(ctx, st, evMessage); err != nil {
			return nil, err
		}
	}
}

var errWindow = fmt.Errorf("%w: window", errFrame)

func (st *stream) widen(f *frame) error {
	d := decoder{b: f.data}
	n := d.u32() // 0 for a torn frame
	st.mu.Lock()
	defer st.mu.Unlock()
	if n == 0 || uint64(st.outLeft)+uint64(n) > maxWindow {
		return errWindow
	}
	st.outLeft += int(n)
	st.signal(evWindow)
	return nil
}

// errOver: the peer has ended the stream; its status has the reason.
var errOver = errors.New("the peer ended the stream")

// reserve takes up to n bytes of the window, at least one of a positive n.
func (st *stream) reserve(ctx context.Context, n int) (int, error) {
	for {
		st.mu.Lock()
		k := min(n, st.outLeft)
		err := st.err
		if err == nil && st.ended && st.s.client {
			err = errOver
		}
		if err == nil && (k > 0 || n == 0) {
			st.outLeft -= k
			st.mu.Unlock()
			return k, nil
		}
		st.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if err := st.s.await(ctx, st, evWindow); err != nil {
			return 0, err
		}
	}
}

// sendMessage sends msg after the blocks that fl names; the last frame has tail and the flags last.
func (st *stream) sendMessage(ctx context.Context, fl flags, blocks, msg []byte, last flags, tail []byte) error {
	room := maxData - len(blocks) - len(tail)
	if n := len(blocks) + len(tail); n > maxBlocks { // they come in parts, and data with the last
		if n > st.s.peerBlocks {
			return tooLong(n, st.s.peerBlocks)
		}
		room = maxData
	}
	fl |= fData | fFirst
	total := len(msg)
	if g, ok := st.s.choose(total); ok {
		return st.sendToSink(ctx, g, fl|last, append(blocks, tail...), msg)
	}
	for {
		n, err := st.reserve(ctx, min(len(msg), room))
		if err != nil {
			return err
		}
		chunk := msg[:n]
		msg = msg[n:]
		if len(msg) == 0 {
			fl |= last
			blocks = append(blocks, tail...)
		}
		st.opened = true
		if err := st.s.send(kindStream, fl, st.id, blocks, total, chunk); err != nil {
			return err
		}
		if len(msg) == 0 {
			return nil
		}
		fl, blocks = fl&fPacked|fData, blocks[:0]
	}
}
