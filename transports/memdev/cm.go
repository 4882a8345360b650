package memdev

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// answerLimit bounds every connection step whose context has no deadline, and the life of an unanswered request.
const answerLimit = 10 * time.Second

// firstPort starts the addresses that the fabric picks (RFC 6335 dynamic ports).
const firstPort = 49152

func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, answerLimit)
}

type listener struct {
	dev     *Device
	addr    string
	backlog int
	closed  bool
	queue   []*connRequest
	wake    chan struct{} // token when queue or closed changed
}

// Listen takes any addr; an empty one or port 0 gets a port of its own. A backlog of 0 means 1.
func (d *Device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	fail := func(err error) (rdma.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	if backlog < 0 {
		return fail(rdma.ErrInvalid)
	}
	f := d.fab
	f.lock()
	defer f.unlock()
	if err := d.alive(); err != nil {
		return fail(err)
	}
	at := f.pickAddr(addr, d.host)
	if f.listeners[at] != nil {
		return fail(rdma.ErrAddrInUse)
	}
	l := &listener{dev: d, addr: at, backlog: max(backlog, 1), wake: make(chan struct{}, 1)}
	f.listeners[at] = l
	d.open++
	return l, nil
}

func (f *Fabric) pickAddr(addr, host string) string {
	h, port, err := net.SplitHostPort(addr)
	if addr != "" && (err != nil || (port != "0" && port != "" && h != "")) {
		return addr
	}
	if h == "" {
		h = host
	}
	if port != "" && port != "0" {
		return net.JoinHostPort(h, port)
	}
	for {
		at := net.JoinHostPort(h, strconv.Itoa(firstPort+f.lastPort))
		f.lastPort++
		if f.listeners[at] == nil {
			return at
		}
	}
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	f := l.dev.fab
	f.lock()
	defer f.unlock()
	var r *connRequest
	err := f.await(ctx, l.wake, func() bool {
		if len(l.queue) > 0 {
			r, l.queue = l.queue[0], l.queue[1:]
		}
		return r != nil || l.closed
	})
	if l.closed || len(l.queue) > 0 {
		signal(l.wake) // for the next Accept
	}
	if err == nil && r == nil {
		err = rdma.ErrClosed
	}
	if err != nil {
		return nil, &rdma.OpError{Op: "accept", Object: l.addr, Err: err}
	}
	return r, nil
}

// Close refuses the requests that wait and frees the address.
func (l *listener) Close() error {
	f := l.dev.fab
	f.lock()
	defer f.unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for _, r := range l.queue {
		r.answer(&rdma.RejectError{})
	}
	l.queue = nil
	delete(f.listeners, l.addr)
	l.dev.open--
	signal(l.wake)
	return nil
}

// connRequest is one Connect: the active QP waits in it until it is answered.
type connRequest struct {
	from     *qp
	to       *listener
	param    rdma.ConnParam // as the passive side sees it
	rnr      int            // the active side's own
	answered bool
	result   rdma.ConnParam // for the active side
	err      error
	wake     chan struct{} // token when answered
}

func (r *connRequest) answer(err error) {
	r.answered, r.err = true, err
	r.from.dialing = nil
	signal(r.wake)
}

func (q *qp) hangUp(why error) {
	if r := q.dialing; r != nil {
		r.withdraw()
		r.answer(why)
	}
}

func (r *connRequest) withdraw() {
	r.to.queue = slices.DeleteFunc(r.to.queue, func(o *connRequest) bool { return o == r })
}

func checkParam(p *rdma.ConnParam) error {
	switch {
	case len(p.PrivateData) > caps.MaxPrivate:
		return fmt.Errorf("%d bytes of private data: %w", len(p.PrivateData), rdma.ErrInvalid)
	case p.IRD < 0 || p.IRD > caps.MaxRDAtom || p.ORD < 0 || p.ORD > caps.MaxRDAtom:
		return fmt.Errorf("ird %d, ord %d: %w", p.IRD, p.ORD, rdma.ErrInvalid)
	case p.RNRRetry < 0 || p.RNRRetry > rnrForever:
		return fmt.Errorf("rnr retry %d: %w", p.RNRRetry, rdma.ErrInvalid)
	}
	return nil
}

// Connect joins the QP to the listener at addr. A failed attempt leaves the QP in INIT, ready for another.
func (q *qp) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	f := q.dev.fab
	f.lock()
	defer f.unlock()
	r, err := q.dial(ctx, addr, p)
	if err == nil {
		err = r.wait(ctx)
	}
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect", Object: addr, Err: err}
	}
	return r.result, nil
}

func (q *qp) dial(ctx context.Context, addr string, p rdma.ConnParam) (*connRequest, error) {
	if err := checkParam(&p); err != nil {
		return nil, err
	}
	if q.closed {
		return nil, rdma.ErrClosed
	}
	if q.state != rdma.QPInit || q.dialing != nil {
		return nil, rdma.ErrState
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := q.dev.alive(); err != nil {
		return nil, err
	}
	l := q.dev.fab.listeners[addr]
	if l == nil || l.dev.dead {
		return nil, rdma.ErrUnreachable
	}
	if len(l.queue) >= l.backlog {
		return nil, &rdma.RejectError{}
	}
	r := &connRequest{from: q, to: l, rnr: p.RNRRetry, wake: make(chan struct{}, 1)}
	// What one side may have outstanding is what the other must take.
	r.param = rdma.ConnParam{PrivateData: slices.Clone(p.PrivateData), IRD: p.ORD, ORD: p.IRD, RNRRetry: p.RNRRetry}
	q.dialing = r
	l.queue = append(l.queue, r)
	signal(l.wake)
	return r, nil
}

func (r *connRequest) wait(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if r.from.dev.fab.await(limited, r.wake, func() bool { return r.answered }) == nil {
		return r.err
	}
	r.withdraw()
	r.answer(rdma.ErrUnreachable)
	if _, mine := ctx.Deadline(); mine && ctx.Err() == nil {
		return &rdma.RejectError{} // left alone for too long
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
	}
	return rdma.ErrUnreachable
}

func (r *connRequest) Param() rdma.ConnParam {
	p := r.param
	p.PrivateData = slices.Clone(p.PrivateData)
	return p
}

func (r *connRequest) RemoteAddr() string {
	return net.JoinHostPort(r.from.dev.host, fmt.Sprintf("qp%d", r.from.num))
}

func (r *connRequest) open() error {
	switch {
	case r.answered && r.err == rdma.ErrUnreachable:
		return rdma.ErrUnreachable // the peer gave up
	case r.answered:
		return rdma.ErrState
	}
	return nil
}

// Accept joins qp. Both sides are in RTS when it returns. A call refused for its arguments leaves the request open.
func (r *connRequest) Accept(ctx context.Context, peer rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	f := r.to.dev.fab
	f.lock()
	defer f.unlock()
	if err := r.accept(ctx, peer, &p); err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.to.addr, Err: err}
	}
	return p, nil
}

func (r *connRequest) accept(ctx context.Context, peer rdma.QP, p *rdma.ConnParam) error {
	q, _ := peer.(*qp)
	if q == nil || q.dev != r.to.dev {
		return fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)
	}
	if err := checkParam(p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	switch {
	case q.closed:
		return rdma.ErrClosed
	case q.state != rdma.QPInit || q.dialing != nil:
		return rdma.ErrState
	}
	answer := slices.Clone(p.PrivateData)
	p.IRD = min(p.IRD, r.param.IRD)
	p.ORD = min(p.ORD, r.param.ORD)
	p.PrivateData = slices.Clone(r.param.PrivateData)
	r.result = rdma.ConnParam{PrivateData: answer, IRD: p.ORD, ORD: p.IRD, RNRRetry: r.rnr}
	q.join(r.from, p)
	r.from.join(q, &r.result)
	r.answer(nil)
	return nil
}

func (q *qp) join(peer *qp, p *rdma.ConnParam) {
	q.peer, q.ird, q.ord, q.rnr = peer, p.IRD, p.ORD, p.RNRRetry
	q.to(rdma.QPRTR)
	q.to(rdma.QPRTS)
}

func (r *connRequest) Reject(ctx context.Context, privateData []byte) error {
	f := r.to.dev.fab
	f.lock()
	defer f.unlock()
	err := ctx.Err()
	if err == nil {
		err = checkParam(&rdma.ConnParam{PrivateData: privateData})
	}
	if err == nil {
		err = r.open()
	}
	if err != nil {
		return &rdma.OpError{Op: "reject", Object: r.to.addr, Err: err}
	}
	r.answer(&rdma.RejectError{PrivateData: slices.Clone(privateData)})
	return nil
}
