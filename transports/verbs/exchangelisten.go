package verbs

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// requestTimeout bounds the wait for a request on a fresh connection.
	requestTimeout = 5 * time.Second
	// requestRoom is how many connections may be silent at once, beside the backlog.
	requestRoom = 32
	// silenceGrace is how long a silent connection is safe from making room. A
	// request leaves with the first segment, one round trip after the accept.
	silenceGrace = 100 * time.Millisecond
	// acceptNap follows a failed accept, of which an exhausted descriptor table is
	// the likely cause: a retry at once would spin.
	acceptNap = 10 * time.Millisecond
)

// exchangeListener takes requests. Memory is bounded: connections wait for their
// request in slots, and for accept in a queue of the backlog's length. When the
// slots are taken, the connection that was silent longest gives way.
type exchangeListener struct {
	l    *net.TCPListener
	addr string

	mu     sync.Mutex
	silent []silentConn // connections whose request has not come, oldest first

	slots chan struct{}  // connections whose request is being read
	queue chan *exchange // requests that wait for accept
	done  chan struct{}
	group sync.WaitGroup
	once  sync.Once
}

type silentConn struct {
	conn  *net.TCPConn
	since time.Time
}

// listenExchange takes requests at addr ("host:port"; port 0 picks one). backlog
// bounds those that wait for accept, at least 1; more are refused.
func listenExchange(ctx context.Context, addr string, backlog int) (*exchangeListener, error) {
	backlog = max(backlog, 1)
	nl, err := (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, rdma.ErrAddrInUse
	}
	if err != nil {
		return nil, cause(err)
	}
	l := &exchangeListener{l: nl.(*net.TCPListener), addr: nl.Addr().String(), slots: make(chan struct{}, backlog+requestRoom),
		queue: make(chan *exchange, backlog), done: make(chan struct{})}
	l.group.Add(1)
	go l.serve()
	return l, nil
}

// accept returns the oldest request; its endpoint is x.peer. The caller answers
// or refuses it, and closes it. A request left alone for answerTimeout is refused.
func (l *exchangeListener) accept(ctx context.Context) (*exchange, error) {
	for {
		x, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		if x.waits() {
			return x, nil
		}
		x.close()
	}
}

// next prefers a request that waits over an ended ctx.
func (l *exchangeListener) next(ctx context.Context) (*exchange, error) {
	select {
	case <-l.done:
		return nil, rdma.ErrClosed
	default:
	}
	select {
	case x := <-l.queue:
		return x, nil
	default:
	}
	select {
	case x := <-l.queue:
		return x, nil
	case <-l.done:
		return nil, rdma.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waits is false for a request that expired or whose initiator has gone.
func (x *exchange) waits() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.phase == phaseAsked && !x.closed && !hungUp(x.conn)
}

// hungUp looks for the end of the stream, or for bytes that nobody may send
// before the answer, without waiting.
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

func (l *exchangeListener) serve() {
	defer l.group.Done()
	for {
		c, err := l.l.AcceptTCP()
		if err != nil {
			select {
			case <-l.done:
				return
			case <-time.After(acceptNap):
				continue
			}
		}
		if !l.takeSlot() {
			c.Close()
			return
		}
		l.group.Add(1)
		go func() {
			defer l.group.Done()
			defer func() { <-l.slots }()
			l.request(c)
		}()
	}
}

// takeSlot waits for a slot, at the cost of the longest silent connection if
// there is none. It is false when the listener closes.
func (l *exchangeListener) takeSlot() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.done:
			return false
		case <-time.After(l.evict(time.Now())):
		}
	}
}

// evict ends the longest silent connection, unless it came only just now. It
// returns when to look again.
func (l *exchangeListener) evict(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.silent) == 0 {
		return silenceGrace
	}
	oldest := l.silent[0]
	if rest := silenceGrace - now.Sub(oldest.since); rest > 0 {
		return rest
	}
	oldest.conn.SetDeadline(time.Unix(1, 0))
	l.silent = l.silent[1:]
	return silenceGrace
}

// request reads one request and queues it. Anything else closes the connection,
// another version after a frame of ours, by which the peer can name the difference.
func (l *exchangeListener) request(c *net.TCPConn) {
	f, err := l.hear(c)
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
	select {
	case <-l.done:
		x.dismiss(refusedByUser)
		return
	default:
	}
	select {
	case l.queue <- x:
	default:
		x.dismiss(refusedBusy)
	}
}

// hear reads a frame within requestTimeout, until the connection is evicted or
// the listener closes.
func (l *exchangeListener) hear(c *net.TCPConn) (*frame, error) {
	now := time.Now()
	l.mu.Lock()
	c.SetDeadline(now.Add(requestTimeout))
	select {
	case <-l.done:
		c.SetDeadline(time.Unix(1, 0))
	default:
	}
	l.silent = append(l.silent, silentConn{c, now})
	l.mu.Unlock()
	var b [frameLen]byte
	err := readFrame(c, &b)
	l.mu.Lock()
	l.silent = slices.DeleteFunc(l.silent, func(s silentConn) bool { return s.conn == c })
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return decodeFrame(&b)
}

// dismiss refuses on behalf of nobody, and closes. An exchange that was answered
// meanwhile is left alone.
func (x *exchange) dismiss(why refusal) {
	ctx, cancel := context.WithTimeout(context.Background(), lingerTimeout)
	defer cancel()
	if err := x.refuseFor(ctx, why, nil); errors.Is(err, rdma.ErrState) {
		return
	}
	x.close()
}

// close ends listening, refuses who waits and joins the goroutines. Exchanges
// that were accepted live on. Idempotent.
func (l *exchangeListener) close() error {
	var err error
	l.once.Do(func() {
		close(l.done)
		err = l.l.Close()
		l.mu.Lock()
		for _, s := range l.silent {
			s.conn.SetDeadline(time.Unix(1, 0))
		}
		l.mu.Unlock()
		l.group.Wait()
		for {
			select {
			case x := <-l.queue:
				x.dismiss(refusedByUser)
			default:
				return
			}
		}
	})
	return err
}
