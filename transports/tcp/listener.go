package tcp

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/acceptor"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// backlog bounds the connections that are being greeted, and those that wait for Accept. Arbitrary.
const backlog = 64

// listener greets in the background and answers in Accept: no silent client holds up others, or costs a window.
type listener struct {
	*acceptor.Acceptor[stream.Opening, *caller]
	t   *transport
	cfg transports.Config
	ln  stream.Listener
}

type caller struct {
	conn   stream.Opening
	ask    greeting
	expire *time.Timer // refuses it, as an unanswered connection request of the waist
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
	l := &listener{t: t, cfg: cfg, ln: ln, Acceptor: acceptor.New[stream.Opening, *caller](acceptor.Limits{
		Backlog: backlog, Request: greetTimeout, Grace: greetTimeout})}
	l.Serve(ln.Accept, l.greet)
	return l, nil
}

// Addr is "host:port" with the real port.
func (l *listener) Addr() string { return l.ln.Addr() }

// Accept answers the next greeted client, and passes over those that are gone or break the protocol.
func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	for {
		c, err := l.Next(ctx)
		if err == nil && !c.expire.Stop() {
			continue // it was refused
		}
		var s *session
		if err == nil {
			s, err = l.t.open(c.conn, l.cfg, &c.ask)
		}
		if err != nil {
			return nil, nil, &rdma.OpError{Op: "accept at", Object: l.Addr(), Err: err}
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

// greet queues a client for Accept. Another version of the protocol gets a refusal, another protocol nothing.
func (l *listener) greet(conn stream.Opening) {
	defer onepeer.Recover(func(error) { conn.Close() })
	var b [greetingLen]byte
	err := l.Await(conn, func() error {
		_, err := io.ReadFull(conn, b[:])
		return err
	})
	if err != nil {
		conn.Close()
		return
	}
	c := &caller{conn: conn}
	c.ask, err = parseGreeting(&b)
	switch {
	case errors.Is(err, errMagic):
		conn.Close()
	case err != nil || c.ask.verdict != verdictAsk:
		refuse(conn)
	default:
		c.expire = time.AfterFunc(connectTimeout, func() { refuse(conn) })
		if l.Offer(c) != nil {
			c.refuse()
		}
	}
}

// refuse is for a client that waits, unless it was refused.
func (c *caller) refuse() {
	if c.expire.Stop() {
		refuse(c.conn)
	}
}

func refuse(conn stream.Opening) {
	no := greeting{version: wireVersion, verdict: verdictRefuse}
	b, _ := no.encode() // fails for a long hello only, and there is none
	conn.SetDeadline(time.Now().Add(time.Second))
	conn.Write(b[:])
	conn.Close()
}

// Close ends listening, refuses who waits, and joins the goroutines. Sessions live on. Idempotent.
func (l *listener) Close() error { return l.Acceptor.Close(l.ln.Close, (*caller).refuse) }
