package grpcrdma

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// answerLimit bounds the answer to one dialler, while others wait.
	answerLimit = 5 * time.Second
	// refusalPause is how long a listener that cannot make connections waits before
	// the next one, as net/http does for its temporary errors. Arbitrary.
	refusalPause = 5 * time.Millisecond
)

// Listener takes connections of Nets like its own. It implements net.Listener.
type Listener struct {
	net    *Net
	l      rdma.Listener
	ctx    context.Context
	cancel context.CancelFunc
}

var _ net.Listener = (*Listener)(nil)

// Listen takes connections at addr ("host:port"; port 0 picks one). Errors are
// the device's: rdma.ErrAddrInUse above all.
func (n *Net) Listen(ctx context.Context, addr string) (*Listener, error) {
	fail := func(err error) (*Listener, error) {
		return nil, &net.OpError{Op: "listen", Net: "rdma", Addr: Addr(addr), Err: err}
	}
	dl, err := n.dev.Listen(ctx, addr, n.cfg.Backlog)
	if err != nil {
		return fail(err)
	}
	l := &Listener{net: n, l: dl}
	if s, ok := dl.(interface {
		OnOtherProtocol(func(c net.Conn, first []byte))
	}); ok {
		s.OnOtherProtocol((&foreignPeers{net: n}).answer)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	n.mu.Lock()
	closed := n.ctx.Err() != nil
	if !closed {
		n.listeners[l] = struct{}{}
	}
	n.mu.Unlock()
	if closed {
		l.Close()
		return fail(net.ErrClosed)
	}
	return l, nil
}

// Addr is where it listens, with the real port.
func (l *Listener) Addr() net.Addr { return Addr(l.l.Addr()) }

// Accept takes the next connection. Foreign peers, diallers that have left, and those this side has
// no room for are refused: the only error is the end of the listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		req, err := l.l.Accept(l.ctx)
		if err != nil {
			if l.ctx.Err() != nil {
				err = net.ErrClosed
			}
			return nil, &net.OpError{Op: "accept", Net: "rdma", Addr: l.Addr(), Err: err}
		}
		c, err := l.net.accept(l.ctx, req, Addr(l.l.Addr()))
		if err == nil {
			return c, nil
		}
		ctx, cancel := context.WithTimeout(l.ctx, answerLimit)
		// whoever was answered already is not rejected again: that only fails
		_ = req.Reject(ctx, refusal(err, l.net.caps.MaxPrivate))
		cancel()
		if theirs(err) || l.ctx.Err() != nil {
			continue
		}
		l.net.cfg.Log.Warn("rdma connection refused", "peer", req.RemoteAddr(), "cause", err)
		select {
		case <-time.After(refusalPause):
		case <-l.ctx.Done():
		}
	}
}

// theirs is true for failures that the dialler caused: another protocol, or it left.
func theirs(err error) bool {
	return errors.Is(err, rdma.ErrProtocol) || errors.Is(err, rdma.ErrUnreachable) || errors.Is(err, rdma.ErrState)
}

func (n *Net) accept(ctx context.Context, req rdma.ConnRequest, at Addr) (*Conn, error) {
	g, err := parseGreeting(req.Param().PrivateData)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return n.join(func(c *Conn) error {
		c.local, c.remote = at, Addr(req.RemoteAddr())
		c.meet(g)
		// On iWARP the responder sends nothing before the initiator has (RFC 5044
		// §7.1.2), and not every provider sees to that itself: siw's initiator refuses a
		// reply with data behind it. The initiator's first word is a credit.
		c.tx.held.Store(n.caps.Completion == rdma.CompletionLocal)
		_, err := req.Accept(ctx, c.qp, c.param())
		return err
	})
}

// Close ends Accept. Connections live on. Idempotent.
func (l *Listener) Close() error {
	l.cancel()
	l.net.mu.Lock()
	delete(l.net.listeners, l)
	l.net.mu.Unlock()
	return l.l.Close()
}
