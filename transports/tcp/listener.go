package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

const (
	// backlog bounds the connections that are being greeted or wait for Accept.
	// Arbitrary; more wait in the kernel's queue.
	backlog = 64
	// acceptPause follows a failed accept, of which an exhausted descriptor table is
	// the likely cause: a retry at once would spin.
	acceptPause = 10 * time.Millisecond
)

// listener greets in the background, so that a silent client holds up nobody,
// and answers in Accept, so that a session nobody takes costs no window.
type listener struct {
	t    *transport
	cfg  transports.Config
	ln   stream.Listener
	addr string

	ready  chan caller
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	slots  chan struct{}
	group  sync.WaitGroup
	close  func() error
}

// caller is a greeted connection that waits for its answer.
type caller struct {
	conn stream.Opening
	ask  greeting
}

// Listen takes sessions at addr. Errors: rdma.ErrInvalid, ErrAddrInUse and the system's.
func (t *transport) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	l, err := t.listen(ctx, addr, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	return l, nil
}

func (t *transport) listen(ctx context.Context, addr string, cfg transports.Config) (*listener, error) {
	if t.closed.Load() {
		return nil, rdma.ErrClosed
	}
	cfg, err := cfg.Within(t.Caps(), maxWindow, 1)
	if err != nil {
		return nil, err
	}
	ln, err := t.stack.Listen(ctx, addr, t.cfg.buffers())
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, rdma.ErrAddrInUse
	}
	if err != nil {
		return nil, err
	}
	l := &listener{t: t, cfg: cfg, ln: ln, addr: ln.Addr(), ready: make(chan caller),
		slots: make(chan struct{}, backlog)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.close = sync.OnceValue(func() error {
		l.cancel()
		err := l.ln.Close()
		l.group.Wait()
		return err
	})
	l.group.Go(l.serve)
	return l, nil
}

// Addr is "host:port" with the real port.
func (l *listener) Addr() string { return l.addr }

// Accept answers the next greeted client. A client that is gone or breaks the
// protocol is passed over; an error is this side's or the end of ctx.
func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	for {
		c, err := l.next(ctx)
		if err != nil {
			return nil, nil, &rdma.OpError{Op: "accept at", Object: l.addr, Err: err}
		}
		s, err := l.t.open(c.conn, l.cfg, &c.ask)
		if err != nil {
			return nil, nil, &rdma.OpError{Op: "accept at", Object: l.addr, Err: err}
		}
		if s.greet(l.cfg) {
			return s, c.ask.hello, nil
		}
		s.Close()
	}
}

// greet answers the client. A fresh socket has room for it; one that has none is gone.
func (s *session) greet(cfg transports.Config) bool {
	take := greeting{version: wireVersion, verdict: verdictTake, window: uint64(cfg.Window),
		readDepth: uint32(cfg.ReadDepth)}
	b, _ := take.encode() // fails for a long hello only, and there is none
	n, err := s.conn.Send(b[:])
	return err == nil && n == len(b)
}

// next prefers a client that waits over an ended ctx.
func (l *listener) next(ctx context.Context) (caller, error) {
	if l.ctx.Err() != nil {
		return caller{}, rdma.ErrClosed
	}
	select {
	case c := <-l.ready:
		return c, nil
	default:
	}
	select {
	case c := <-l.ready:
		return c, nil
	case <-ctx.Done():
		return caller{}, ctx.Err()
	case <-l.ctx.Done():
		return caller{}, rdma.ErrClosed
	}
}

func (l *listener) serve() {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		conn, err := l.ln.Accept()
		if err != nil {
			<-l.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(acceptPause)
			continue
		}
		l.group.Go(func() { l.greet(conn) })
	}
}

// greet reads the client's greeting and waits for an Accept.
func (l *listener) greet(conn stream.Opening) {
	defer func() { <-l.slots }()
	defer onepeer.Recover(func(error) { conn.Close() })
	ask, err := l.readGreeting(conn)
	if err != nil {
		conn.Close()
		return
	}
	// As an unanswered connection request of the waist, it is refused after 10 s.
	t := time.NewTimer(connectTimeout)
	defer t.Stop()
	select {
	case l.ready <- caller{conn, ask}:
		return
	case <-t.C:
	case <-l.ctx.Done():
	}
	refuse(conn)
}

// readGreeting reads the greeting. Another version of the protocol gets a refusal, so
// that it can say which versions differ; any other protocol gets nothing.
func (l *listener) readGreeting(conn stream.Opening) (greeting, error) {
	if err := conn.SetDeadline(time.Now().Add(greetTimeout)); err != nil {
		return greeting{}, err
	}
	leave := after(l.ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer leave()
	var b [greetingLen]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return greeting{}, err
	}
	g, err := parseGreeting(&b)
	if errors.Is(err, errMagic) {
		return g, err
	}
	if err == nil && g.verdict != verdictAsk {
		err = errGreeting
	}
	if err != nil {
		refuse(conn)
	}
	return g, err
}

// refuse says no and closes.
func refuse(conn stream.Opening) {
	no := greeting{version: wireVersion, verdict: verdictRefuse}
	b, _ := no.encode() // fails for a long hello only, and there is none
	conn.SetDeadline(time.Now().Add(time.Second))
	conn.Write(b[:])
	conn.Close()
}

// Close ends listening, refuses who waits, and joins the goroutines. Sessions
// live on. Idempotent.
func (l *listener) Close() error { return l.close() }
