package iwarp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/acceptor"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// listener takes TCP connections and reads their MPA Requests, as many at a time as its acceptor has room for.
type listener struct {
	dev *Device
	l   stream.Listener
	*acceptor.Acceptor[stream.Opening, *connRequest]

	other atomic.Pointer[func(c net.Conn, first []byte)]
}

// Listen takes connections at addr.
func (d *Device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	fail := func(err error) (rdma.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	nl, err := d.stack.Listen(ctx, addr, d.cfg.buffers())
	if errors.Is(err, syscall.EADDRINUSE) {
		return fail(rdma.ErrAddrInUse)
	}
	if err != nil {
		return fail(err)
	}
	l := &listener{dev: d, l: nl, Acceptor: acceptor.New[stream.Opening, *connRequest](acceptor.Limits{
		Backlog: backlog, Room: startupRoom, Request: requestTimeout, Grace: silenceGrace})}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		nl.Close()
		return fail(rdma.ErrClosed)
	}
	d.listeners[l] = struct{}{}
	d.mu.Unlock()
	l.Serve(nl.Accept, l.request)
	return l, nil
}

func (l *listener) Addr() string { return l.l.Addr() }

// await reads the Request of a socket. first is what came, as far as it was read.
func (l *listener) await(c stream.Opening) (f *mpa.Frame, first []byte, err error) {
	var seen bytes.Buffer
	err = l.Await(c, func() (err error) {
		f, err = readFrame(io.TeeReader(c, &seen))
		return err
	})
	return f, seen.Bytes(), err
}

// OnOtherProtocol has answer called for peers that speak something else, with the first octets that came, within
// otherTimeout and until the listener closes; the connection is closed behind it. Without it they are cut off (RFC 5044
// §7.1.2).
func (l *listener) OnOtherProtocol(answer func(c net.Conn, first []byte)) { l.other.Store(&answer) }

const otherTimeout = 2 * time.Second

func (l *listener) answerOther(c stream.Opening, first []byte) {
	answer := l.other.Load()
	if answer == nil || c.SetDeadline(time.Now().Add(otherTimeout)) != nil {
		return
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-l.Done():
			c.Close()
		case <-over:
		}
	}()
	(*answer)(c, first)
	close(over)
	<-watched
}

// request reads and queues one MPA Request; else the socket is closed in silence (RFC 5044 §7.1.2 rules 2 and 5).
func (l *listener) request(c stream.Opening) {
	defer onepeer.Recover(func(error) { c.Close() })
	f, first, err := l.await(c)
	if errors.Is(err, rdma.ErrProtocol) {
		l.answerOther(c, first)
	}
	if err != nil || f.Reply {
		c.Close()
		return
	}
	// What the peer asks; the depths that hold are settled by Accept.
	ask := mpa.Config{CRC: !l.dev.cfg.NoCRC, Markers: l.dev.cfg.Markers, RTRWrite: true, RTRRead: true, IRD: maxRDAtom,
		ORD: maxRDAtom}
	n, err := ask.HandleRequest(f)
	if err != nil {
		c.Close()
		return
	}
	offer := cutOffer(&n)
	r := &connRequest{l: l, conn: c, req: f, ask: n, offer: offer}
	r.expire = time.AfterFunc(time.Hour, func() { r.Reject(context.Background(), nil) })
	r.expire.Reset(answerTimeout) // it may run from here on, and stops itself
	if l.Offer(r) != nil {
		r.Reject(context.Background(), nil) // backlog full
	}
}

// Accept returns the oldest request that was not answered for the application after answerTimeout.
func (l *listener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	for {
		r, err := l.Next(ctx)
		if err == rdma.ErrClosed {
			return nil, &rdma.OpError{Op: "accept", Object: l.Addr(), Err: err}
		}
		if err != nil {
			return nil, err
		}
		if !r.taken.Load() {
			return r, nil
		}
	}
}

// Close stops listening and refuses the requests that wait.
func (l *listener) Close() error {
	l.Acceptor.Close(l.l.Close, func(r *connRequest) { r.Reject(context.Background(), nil) })
	l.dev.mu.Lock()
	delete(l.dev.listeners, l)
	l.dev.mu.Unlock()
	return nil
}

// connRequest is one initiator that waits for its Reply.
type connRequest struct {
	l      *listener
	conn   stream.Opening
	req    *mpa.Frame
	ask    mpa.Negotiated
	offer  peerOffer
	expire *time.Timer
	taken  atomic.Bool // by the one caller who answers
}

// Param is what the peer asks: its ORD is the IRD it needs here. Without an enhanced Request depths are 0.
func (r *connRequest) Param() rdma.ConnParam {
	p := rdma.ConnParam{PrivateData: append([]byte(nil), r.ask.PeerPrivate...)}
	if r.ask.PeerORD != mpa.NoNegotiation {
		p.IRD = min(int(r.ask.PeerORD), maxRDAtom)
	}
	if r.ask.PeerIRD != mpa.NoNegotiation {
		p.ORD = min(int(r.ask.PeerIRD), maxRDAtom)
	}
	return p
}

func (r *connRequest) RemoteAddr() string { return r.conn.RemoteAddr().String() }

func (r *connRequest) Accept(ctx context.Context, rq rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	fail := func(err error) (rdma.ConnParam, error) {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(), Err: err}
	}
	q, ok := rq.(*qp)
	if !ok || q.dev != r.l.dev {
		return fail(fmt.Errorf("qp of another device: %w", rdma.ErrInvalid))
	}
	if err := r.l.dev.checkParam(&p); err != nil {
		return fail(err)
	}
	ctx, err := q.claim(ctx)
	if err != nil {
		return fail(err)
	}
	defer q.release()
	if !r.taken.CompareAndSwap(false, true) {
		return fail(rdma.ErrState)
	}
	r.expire.Stop()
	stop := context.AfterFunc(ctx, func() { r.conn.SetDeadline(time.Unix(1, 0)) })
	cfg := r.l.dev.cfg.mpa(&p)
	n, err := cfg.HandleRequest(r.req)
	var rep *mpa.Frame
	if err == nil {
		rep, err = cfg.NewReply(r.req, n, r.l.dev.cfg.reply(p.PrivateData, r.offer))
	}
	if err == nil {
		_, err = r.conn.Write(mpa.AppendFrame(nil, rep))
	}
	if !stop() && err == nil {
		err = context.DeadlineExceeded
	}
	if err != nil {
		r.conn.Close()
		return fail(reachable(err))
	}
	n.PeerPrivate = r.ask.PeerPrivate
	if err := q.attach(r.conn, n, r.offer, true); err != nil {
		return fail(err)
	}
	return rdma.ConnParam{PrivateData: append([]byte(nil), n.PeerPrivate...), IRD: int(n.IRD), ORD: int(n.ORD)}, nil
}

func (r *connRequest) Reject(ctx context.Context, private []byte) error {
	fail := func(err error) error {
		return &rdma.OpError{Op: "reject", Object: r.RemoteAddr(), Err: err}
	}
	if len(private) > r.l.dev.caps.MaxPrivate {
		return fail(rdma.ErrInvalid)
	}
	if !r.taken.CompareAndSwap(false, true) {
		return fail(rdma.ErrState)
	}
	r.expire.Stop()
	defer r.conn.Close()
	rep, err := mpa.NewReject(r.req, private)
	if err != nil {
		return fail(err)
	}
	deadline := time.Now().Add(lingerTimeout)
	if dl, ok := ctx.Deadline(); ok && dl.Before(deadline) {
		deadline = dl
	}
	r.conn.SetDeadline(deadline)
	if _, err := r.conn.Write(mpa.AppendFrame(nil, rep)); err != nil {
		return fail(err)
	}
	r.conn.CloseWrite()
	return nil
}
