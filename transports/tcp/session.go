package tcp

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const (
	// maxCalls bounds the receive calls of one Poll against a peer that sends faster than they empty the socket.
	maxCalls = 16
	// closeGrace is how long Close hands over while nothing moves, closeLimit how long in any case. Both arbitrary.
	closeGrace = 250 * time.Millisecond
	closeLimit = 5 * time.Second
	closePause = time.Millisecond
)

// session is one connection. Poll's steps: send what is held back, retire, parse, receive, parse again, answer.
type session struct {
	conn      stream.Conn
	buf       rdma.Buffer
	win       []byte
	remoteLen uint64
	maxInline uint32
	in        inbound
	out       outbound

	sendErr error // sending failed; what the peer sent before may still be read
	err     error // the session is over
	status  rdma.Status
	closed  bool
	turn    bool    // a receive found no room in the last Poll: it goes first in the next
	wait    *waiter // nil without Config.Events
}

// newSession owns the connection and the window in any case.
func (t *transport) newSession(c stream.Opening, cfg transports.Config, peer *greeting, buf rdma.Buffer) (s *session,
	err error) {
	defer func() {
		if err != nil {
			buf.Free()
		}
	}()
	conn, err := c.Stream()
	if err != nil {
		return nil, err
	}
	win := buf.Bytes()
	s = &session{
		conn:      conn,
		buf:       buf,
		win:       win,
		remoteLen: peer.window,
		maxInline: uint32(cfg.MaxInline),
		in:        newInbound(win, cfg.RecvDepth, min(cfg.ReadDepth, int(peer.readDepth)), cfg.ReadDepth),
		out:       newOutbound(win, cfg.SendDepth),
	}
	if cfg.Events {
		if s.wait, err = newWaiter(t.stack, conn); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return s, nil
}

// Local is the own window; nil after Close.
func (s *session) Local() []byte { return s.win }

// RemoteLen is the size of the peer's window in bytes.
func (s *session) RemoteLen() uint64 { return s.remoteLen }

// Post takes ops in order and sends what the socket has room for. Errors: rdma.ErrQueueFull, rdma.ErrInvalid (range,
// length or flag), rdma.ErrNotSupported (kind), or the session's end.
func (s *session) Post(ops []transports.Op) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n := 0
	var err error
	for ; n < len(ops); n++ {
		op := &ops[n]
		if err = s.check(op); err != nil {
			break
		}
		if op.Kind == transports.KindRecv {
			if s.in.recvs.full() {
				err = rdma.ErrQueueFull
				break
			}
			*s.in.recvs.push() = recvOp{op.Local, op.Len, op.Slot}
			continue
		}
		if s.out.ops.full() {
			s.out.retire(nil) // unsignaled ops hold their place no longer than needed
			if s.out.ops.full() {
				err = rdma.ErrQueueFull
				break
			}
		}
		if op.Flags&transports.Inline != 0 && !s.inlineRoom(op) {
			err = rdma.ErrQueueFull
			break
		}
		s.out.ops.push().Op = *op
		if op.Flags&transports.Inline != 0 {
			s.out.encodeOp(s.out.ops.at(s.out.next), &s.in)
		}
	}
	s.flush()
	return n, err
}

// inlineRoom tells that the bytes of op can be taken now: nothing is held back before it and the batch has room.
func (s *session) inlineRoom(op *transports.Op) bool {
	if s.out.next != s.out.ops.tail || !s.out.roomy() {
		s.flush()
	}
	return s.out.next == s.out.ops.tail && s.out.roomy() && !s.out.held(op, &s.in)
}

func (s *session) check(op *transports.Op) error {
	win := uint64(len(s.win))
	if op.Len > maxMsg || op.Local > win || uint64(op.Len) > win-op.Local {
		return rdma.ErrInvalid
	}
	switch op.Kind {
	case transports.KindRecv:
		return nil
	case transports.KindSend:
	case transports.KindWrite, transports.KindWriteImm, transports.KindRead:
		if op.Remote > s.remoteLen || uint64(op.Len) > s.remoteLen-op.Remote {
			return rdma.ErrInvalid
		}
	default:
		return rdma.ErrNotSupported
	}
	if op.Flags&transports.Inline != 0 && (op.Kind == transports.KindRead || op.Len > s.maxInline) {
		return rdma.ErrInvalid // send and write only (ibv_post_send(3))
	}
	return nil
}

// flush keeps a failure: the peer may have sent something before it went, which is still to be read.
func (s *session) flush() {
	if s.sendErr == nil {
		s.sendErr = s.out.flush(s.conn, &s.in)
	}
}

// PingPong is not declared: every post and poll works on the socket.
func (s *session) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

// Poll moves finished ops into dst and drives both directions. When the session is over, everything outstanding comes
// out with a failed status first, then the error that ended it.
func (s *session) Poll(dst []transports.Done) (int, error) {
	if s.err != nil {
		return s.drain(dst)
	}
	if s.out.onWire() || s.out.waiting(&s.in) {
		s.flush()
	}
	// Own ops that fill dst every time would keep what the peer says from ever being heard, so a receive that found no
	// room goes first, in half of the room, every other time.
	turn, n := s.turn, 0
	var err error
	if turn {
		n, err = s.in.parse(dst[:(len(dst)+1)/2])
	}
	n += s.out.retire(dst[n:])
	more, idle := true, false
	for calls := 0; ; calls++ {
		var m int
		if err == nil {
			m, err = s.in.parse(dst[n:])
			n += m
		}
		if err != nil {
			s.fail(rdma.StatusFatalErr, err)
			break
		}
		// Finished ops that fill dst do not keep the socket from being read: writes and answers need no room there, and
		// a side that takes one message where it sends many leaves its peer a thirtieth of the path.
		if !more || calls == maxCalls || s.in.stuck() {
			break
		}
		if more, err = s.receive(); err == stream.ErrAgain {
			idle = true
			break
		} else if err != nil {
			s.lost(err)
			break
		}
	}
	s.turn = s.in.phase == wantRoom && !turn
	if s.sendErr != nil && s.err == nil && (idle || s.in.phase == wantRecv) {
		s.fail(rdma.StatusFatalErr, s.sendErr)
	}
	if s.err != nil {
		m, _ := s.drain(dst[n:])
		return n + m, nil
	}
	// Answers leave at once. A socket that was full a moment ago is not asked again.
	if s.out.waiting(&s.in) && !s.out.onWire() {
		s.flush()
	}
	if n < len(dst) {
		n += s.out.retire(dst[n:])
	}
	return n, nil
}

// receive makes one call; a short count means an empty socket, and asking again would only find that out.
func (s *session) receive() (more bool, err error) {
	a, b := s.in.room()
	var n int
	switch {
	case len(a) == 0:
		n, err = s.conn.Recv(b)
	case len(b) == 0:
		n, err = s.conn.Recv(a)
	default:
		n, err = s.conn.Recv2(a, b)
	}
	if err != nil {
		return false, err
	}
	s.in.took(n)
	return n == len(a)+len(b), nil
}

func (s *session) lost(err error) {
	switch {
	case s.sendErr != nil: // the first symptom is the better cause
		s.fail(rdma.StatusFatalErr, s.sendErr)
	case err != io.EOF:
		s.fail(rdma.StatusFatalErr, err)
	case s.in.midMessage():
		s.fail(rdma.StatusFatalErr, io.ErrUnexpectedEOF)
	default:
		s.fail(rdma.StatusRemAbortErr, errPeerClosed)
	}
}

var errPeerClosed = errors.New("the peer closed the connection")

// fail ends the session. The socket goes at once, so that the peer learns of it.
func (s *session) fail(status rdma.Status, cause error) {
	s.status = status
	s.err = &rdma.OpError{Op: "session with", Object: s.conn.RemoteAddr(), Err: cause}
	s.conn.Close()
}

// drain hands out what was outstanding at the end: successes first, then receives and ops with the end's status.
func (s *session) drain(dst []transports.Done) (int, error) {
	if s.closed {
		return 0, rdma.ErrClosed
	}
	n := s.out.retire(dst)
	for ; n < len(dst) && !s.in.recvs.empty(); n++ {
		dst[n] = transports.Done{Slot: s.in.recvs.front().slot, Kind: transports.KindRecv, Status: s.status}
		s.in.recvs.pop()
	}
	for ; n < len(dst) && !s.out.ops.empty(); n++ {
		op := s.out.ops.front()
		dst[n] = transports.Done{Slot: op.Slot, Kind: op.Kind, Status: s.status}
		s.out.drop()
	}
	if n == 0 && s.in.recvs.empty() && s.out.ops.empty() {
		return 0, s.err
	}
	return n, nil
}

// Close hands over what was posted if the peer takes it soon, ends the
// connection and frees the window. Idempotent; later calls return rdma.ErrClosed.
func (s *session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.err == nil {
		s.finish()
	}
	s.err = rdma.ErrClosed
	var errs []error
	if s.wait != nil {
		errs = append(errs, s.wait.close())
	}
	errs = append(errs, s.conn.Close())
	s.win = nil
	errs = append(errs, s.buf.Free())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close session with %s: %w", s.conn.RemoteAddr(), err)
	}
	return nil
}

// finish empties both sides: unread bytes would make the kernel send RST, which can overtake what was sent.
func (s *session) finish() {
	now := time.Now()
	limit, grace := now.Add(closeLimit), now.Add(closeGrace)
	var gone uint64 // bytes on the wire when last looked at
	for fin := false; ; now = time.Now() {
		s.flush()
		if s.sendErr != nil {
			return
		}
		if !fin && !s.out.onWire() {
			s.conn.CloseWrite()
			fin = true
		}
		for range maxCalls {
			if _, err := s.conn.Recv(s.in.stage); err != nil {
				break
			}
		}
		unsent, err := s.conn.Unsent()
		if err != nil || fin && unsent == 0 {
			return
		}
		if g := s.out.sent - uint64(unsent); g != gone {
			gone, grace = g, now.Add(closeGrace)
		}
		if now.After(grace) || now.After(limit) {
			return
		}
		time.Sleep(closePause) // the kernel has no event for an empty send queue
	}
}
