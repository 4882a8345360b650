package verbs

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/acceptor"
)

const (
	// requestTimeout bounds the wait for a request on a fresh connection.
	requestTimeout = 5 * time.Second
	// requestRoom is how many connections may be silent at once, beside the backlog.
	requestRoom = 32
	// silenceGrace is how long a silent connection is safe: a request leaves one round trip after the accept.
	silenceGrace = 100 * time.Millisecond
)

type exchangeListener struct {
	l    *net.TCPListener
	addr string
	*acceptor.Acceptor[*net.TCPConn, *exchange]
}

// listenExchange takes requests at addr ("host:port"; port 0 picks one). backlog
// bounds those that wait for accept, at least 1; more are refused.
func listenExchange(ctx context.Context, addr string, backlog int) (*exchangeListener, error) {
	nl, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, rdma.ErrAddrInUse
	}
	if err != nil {
		return nil, cause(err)
	}
	l := &exchangeListener{l: nl.(*net.TCPListener), addr: nl.Addr().String(),
		Acceptor: acceptor.New[*net.TCPConn, *exchange](acceptor.Limits{
			Backlog: backlog, Room: requestRoom, Request: requestTimeout, Grace: silenceGrace})}
	l.Serve(l.l.AcceptTCP, l.request)
	return l, nil
}

// accept returns the oldest request, to be answered or refused in answerTimeout, and closed.
func (l *exchangeListener) accept(ctx context.Context) (*exchange, error) {
	for {
		x, err := l.Next(ctx)
		if err != nil {
			return nil, err
		}
		if x.waits() {
			return x, nil
		}
		x.close()
	}
}

// waits is false for a request that expired or whose initiator has gone.
func (x *exchange) waits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.phase == phaseAsked && !x.closed && !hungUp(x.conn)
}

// hungUp looks for the end of the stream, or for bytes that nobody may send before the answer, without waiting.
func hungUp(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = err != syscall.EAGAIN && err != syscall.EINTR
	})
	return err != nil || gone
}

// request queues one request. Another version gets a frame of ours, by which the peer can name the difference.
func (l *exchangeListener) request(c *net.TCPConn) {
	f, err := l.readHello(c)
	var b [frameLen]byte
	if err == nil && f.kind != frameRequest || errors.Is(err, rdma.ErrProtocol) && !errors.Is(err, errFrameMagic) {
		no, _ := appendFrame(b[:0], &frame{kind: frameRefuse}) // nothing in it can be wrong
		c.SetWriteDeadline(time.Now().Add(lingerTimeout))
		c.Write(no)
		err = rdma.ErrProtocol
	}
	if err != nil {
		c.Close()
		return
	}
	x := newExchange(c, phaseAsked)
	x.peer = f.endpoint
	x.mu.Lock()
	x.expire = time.AfterFunc(answerTimeout, func() { x.dismiss(refusedByUser) })
	x.mu.Unlock()
	switch l.Offer(x) {
	case nil:
	case rdma.ErrClosed:
		x.dismiss(refusedByUser)
	default:
		x.dismiss(refusedBusy)
	}
}

func (l *exchangeListener) readHello(c *net.TCPConn) (*frame, error) {
	var b [frameLen]byte
	if err := l.Await(c, func() error { return readFrame(c, &b) }); err != nil {
		return nil, err
	}
	return decodeFrame(&b)
}

// dismiss refuses on behalf of nobody, and closes. An exchange that was answered meanwhile is left alone.
func (x *exchange) dismiss(why refusal) {
	ctx, cancel := context.WithTimeout(context.Background(), lingerTimeout)
	defer cancel()
	if err := x.refuseFor(ctx, why, nil); errors.Is(err, rdma.ErrState) {
		return
	}
	x.close()
}

// close ends listening, refuses who waits and joins the goroutines. Exchanges that were accepted live on. Idempotent.
func (l *exchangeListener) close() error {
	return l.Close(l.l.Close, func(x *exchange) { x.dismiss(refusedByUser) })
}
