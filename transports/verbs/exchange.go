package verbs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// answerTimeout bounds steps without a deadline, and a request that nobody answers (rdma.ConnRequest).
	answerTimeout = 10 * time.Second
	// lingerTimeout bounds farewells: a frame that a peer does not take in this time is not worth more.
	lingerTimeout = time.Second
)

// The kernel finds a dead host in 25 s of silence: a QP's own retries, where work is outstanding, are quicker.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

type exchangePhase uint8

const (
	phaseNone     exchangePhase = iota
	phaseDialed                 // initiator: connected
	phaseAsked                  // responder: the request is here
	phaseAnswered               // both endpoints are known on both sides
	phaseReady                  // both QPs are in RTS
	phaseEnded                  // refused, failed, or said bye
	numExchangePhases
)

type exchangeStep uint8

const (
	stepOffer exchangeStep = iota
	stepAnswer
	stepRefuse
	stepReady
	stepWatch
	stepBye
	numExchangeSteps
)

// exchangeNext is the next phase, phaseNone where a step is not allowed; one that fails leads to phaseEnded.
var exchangeNext = [numExchangePhases][numExchangeSteps]exchangePhase{
	phaseDialed:   {stepOffer: phaseAnswered},
	phaseAsked:    {stepAnswer: phaseAnswered, stepRefuse: phaseEnded},
	phaseAnswered: {stepReady: phaseReady},
	phaseReady:    {stepWatch: phaseReady, stepBye: phaseEnded},
}

// exchange is one TCP connection over which two QPs are joined, and which stays open as long as they are: its end tells
// each side of the other's. The caller owns it and must close it. Steps are called one after the other; bye and close
// may come from other goroutines at any time. Errors name causes, with sentinels of package rdma; the operation and the
// peer are the caller's to add.
type exchange struct {
	conn   *net.TCPConn
	local  netip.Addr // our end of the TCP connection
	remote string     // the other, "host:port"
	peer   endpoint   // once it is known: after offer, or from the start

	mu      sync.Mutex
	phase   exchangePhase
	busy    bool // a step is on the wire
	closed  bool
	expire  *time.Timer // responder: refuses a request left alone
	watcher chan struct{}
}

func newExchange(c *net.TCPConn, phase exchangePhase) *exchange {
	x := &exchange{conn: c, remote: c.RemoteAddr().String(), phase: phase}
	x.local = c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	return x
}

// dialExchange connects to a listening exchange. rdma.ErrUnreachable when nobody answers in time.
func dialExchange(ctx context.Context, addr string) (*exchange, error) {
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: keepAlive}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%w: %w", rdma.ErrInvalid, bad)
		}
		return nil, unreachable(cause(err))
	}
	return newExchange(c.(*net.TCPConn), phaseDialed), nil
}

// offer sends the request and returns the peer's endpoint. A refusal is a
// *rdma.RejectError with the peer's private data; rdma.ErrFabric when either side
// finds that the ports cannot reach each other.
func (x *exchange) offer(ctx context.Context, e endpoint) (endpoint, error) {
	request := &frame{kind: frameRequest, endpoint: e}
	if err := request.check(); err != nil {
		return endpoint{}, err
	}
	err := x.step(ctx, stepOffer, func() error {
		f, err := x.ask(request)
		switch {
		case err != nil:
			return err
		case f.kind == frameRefuse && f.why == refusedFabric:
			return otherFabric("it refused for that reason")
		case f.kind == frameRefuse:
			return &rdma.RejectError{PrivateData: f.Private}
		case f.kind != frameAnswer:
			return fmt.Errorf("%w: %s instead of an answer", rdma.ErrProtocol, f.kind)
		}
		x.peer = f.endpoint
		return reachable(&e, &x.peer)
	})
	if err != nil {
		return endpoint{}, err
	}
	return x.peer, nil
}

// answer accepts the request with our endpoint. Where the two cannot reach each
// other, it refuses for that reason and returns rdma.ErrFabric. rdma.ErrState after the
// request was answered or expired. A bad endpoint leaves the request open.
func (x *exchange) answer(ctx context.Context, e endpoint) error {
	f := &frame{kind: frameAnswer, endpoint: e}
	if err := f.check(); err != nil {
		return err
	}
	return x.step(ctx, stepAnswer, func() error {
		if err := reachable(&e, &x.peer); err != nil {
			x.send(&frame{kind: frameRefuse, why: refusedFabric})
			x.conn.CloseWrite()
			return err
		}
		return x.send(f)
	})
}

// refuse says no, with at most maxExchangePrivate bytes. close is still due.
func (x *exchange) refuse(ctx context.Context, private []byte) error {
	return x.refuseFor(ctx, refusedByUser, private)
}

func (x *exchange) refuseFor(ctx context.Context, why refusal, private []byte) error {
	f := &frame{kind: frameRefuse, why: why, endpoint: endpoint{Private: private}}
	if err := f.check(); err != nil {
		return err
	}
	return x.step(ctx, stepRefuse, func() error {
		if err := x.send(f); err != nil {
			return err
		}
		return x.conn.CloseWrite()
	})
}

// ready tells the peer that our QP is in RTS, and waits until its is too.
func (x *exchange) ready(ctx context.Context) error {
	return x.step(ctx, stepReady, func() error {
		f, err := x.ask(&frame{kind: frameReady})
		if err == nil && f.kind != frameReady {
			err = fmt.Errorf("%w: %s instead of ready", rdma.ErrProtocol, f.kind)
		}
		return err
	})
}

// watch calls gone once, when the peer said bye (orderly), or vanished or broke the protocol, from a goroutine that
// close joins: gone must not call close. It is not called for our own close.
func (x *exchange) watch(gone func(orderly bool)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return rdma.ErrClosed
	}
	if x.busy || x.watcher != nil || exchangeNext[x.phase][stepWatch] == phaseNone {
		return rdma.ErrState
	}
	x.watcher = make(chan struct{})
	go func() {
		defer close(x.watcher)
		f, err := x.receive()
		x.mu.Lock()
		ours := x.closed
		x.mu.Unlock()
		if !ours {
			gone(err == nil && f.kind == frameBye)
		}
	}()
	return nil
}

// bye tells the peer that the connection ends in order. The peer's bye may cross it.
func (x *exchange) bye(ctx context.Context) error {
	return x.step(ctx, stepBye, func() error {
		if err := x.send(&frame{kind: frameBye}); err != nil {
			return err
		}
		return x.conn.CloseWrite()
	})
}

// close joins what runs for it. Without bye or refuse before, the peer learns of it as of a death. Idempotent.
func (x *exchange) close() error {
	x.mu.Lock()
	first := !x.closed
	x.closed = true
	x.phase = phaseEnded
	watcher := x.watcher
	if x.expire != nil {
		x.expire.Stop()
	}
	x.mu.Unlock()
	var err error
	if first {
		err = x.conn.Close()
	}
	if watcher != nil {
		<-watcher
	}
	return err
}

// step runs the wire part of a step under the deadline of ctx, or answerTimeout.
func (x *exchange) step(ctx context.Context, s exchangeStep, do func() error) error {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		return rdma.ErrClosed
	}
	next := exchangeNext[x.phase][s]
	if x.busy || next == phaseNone {
		x.mu.Unlock()
		return rdma.ErrState
	}
	x.busy = true
	if x.expire != nil {
		x.expire.Stop()
	}
	x.mu.Unlock()

	ctx, cancel := withTimeout(ctx)
	defer cancel()
	// bye must not end the reading of the watcher.
	limit := x.conn.SetDeadline
	if s == stepBye {
		limit = x.conn.SetWriteDeadline
	}
	deadline, _ := ctx.Deadline()
	limit(deadline)
	leave := after(ctx, func() { limit(time.Unix(1, 0)) })
	err := do()
	leave()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		why := ctx.Err()
		if why == nil { // the socket's clock was first
			why = context.DeadlineExceeded
		}
		err = fmt.Errorf("%w: %w", rdma.ErrUnreachable, why)
	}
	limit(time.Time{})

	x.mu.Lock()
	defer x.mu.Unlock()
	x.busy = false
	if err != nil {
		next = phaseEnded
	}
	if x.closed {
		next = phaseEnded
		if err != nil {
			err = rdma.ErrClosed
		}
	}
	x.phase = next
	return err
}

func (x *exchange) send(f *frame) error {
	b, err := appendFrame(make([]byte, 0, frameLen), f)
	if err == nil {
		_, err = x.conn.Write(b)
	}
	if err != nil {
		return unreachable(err)
	}
	return nil
}

func (x *exchange) ask(f *frame) (*frame, error) {
	if err := x.send(f); err != nil {
		return nil, err
	}
	answer, err := x.receive()
	if err != nil && !errors.Is(err, rdma.ErrProtocol) {
		err = unreachable(err)
	}
	return answer, err
}

func (x *exchange) receive() (*frame, error) {
	var b [frameLen]byte
	if err := readFrame(x.conn, &b); err != nil {
		return nil, err
	}
	return decodeFrame(&b)
}

// readFrame stops after the magic of an unknown peer, who may send no more than that.
func readFrame(r io.Reader, b *[frameLen]byte) error {
	if _, err := io.ReadFull(r, b[:len(frameMagic)]); err != nil {
		return err
	}
	if [4]byte(b[:4]) != frameMagic {
		return fmt.Errorf("%w: %w", rdma.ErrProtocol, errFrameMagic)
	}
	_, err := io.ReadFull(r, b[len(frameMagic):])
	return err
}

// reachable compares what the endpoints show: only InfiniBand has LIDs, and a RoCE v2 path one IP version.
func reachable(ours, theirs *endpoint) error {
	link := func(e *endpoint) string { return pick(e.LID == 0, "Ethernet", "InfiniBand") }
	if a, b := link(ours), link(theirs); a != b {
		return otherFabric("this port is on %s, its port on %s", a, b)
	}
	if ours.LID != 0 {
		return nil
	}
	a, b := netip.AddrFrom16(ours.GID), netip.AddrFrom16(theirs.GID)
	if a.Is4In6() != b.Is4In6() {
		return otherFabric("our gid is %s, its gid %s: one is IPv4, one IPv6", a, b)
	}
	return nil
}

func otherFabric(format string, a ...any) error {
	return &rdma.AdviceError{Err: fmt.Errorf("%w: "+format, append([]any{rdma.ErrFabric}, a...)...),
		Try: "rdmaperf devices on both sides, and -d, -i and -x to choose"}
}

// newPSN is random: stale packets of an earlier connection of the QP number must not fit (IBTA 12.9.8.1).
func newPSN() uint32 {
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return binary.BigEndian.Uint32(b[:]) & max24
}

func unreachable(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it closed the address exchange", rdma.ErrUnreachable)
	}
	return fmt.Errorf("%w: %w", rdma.ErrUnreachable, cause(err))
}

// cause strips the addresses that package net repeats: they stand in the message already.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, answerTimeout)
}

// after runs f when ctx ends, unless leave was called before. leave waits for an f that runs.
func after(ctx context.Context, f func()) (leave func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		f()
	})
	return func() {
		if !stop() {
			<-ran
		}
	}
}
