package iwarp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// listener takes TCP connections and reads their MPA Requests. Memory is
// bounded: sockets wait for their Request in slots, and for the application in
// a queue of the backlog's length. When all slots are taken, the socket that has
// been silent longest gives way: silent peers cannot keep others out for long.
type listener struct {
	dev *Device
	l   stream.Listener

	mu     sync.Mutex
	silent []silentPeer // sockets whose Request has not come, oldest first

	stranger atomic.Pointer[func(c net.Conn, first []byte)]

	slots chan struct{}     // sockets whose Request is being read
	queue chan *connRequest // Requests that wait for Accept
	done  chan struct{}
	wg    sync.WaitGroup
	once  sync.Once
}

// Listen takes connections at addr.
func (d *Device) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	fail := func(err error) (rdma.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	if backlog < 1 {
		backlog = 1
	}
	nl, err := d.stack.Listen(ctx, addr, d.cfg.buffers())
	if errors.Is(err, syscall.EADDRINUSE) {
		return fail(rdma.ErrAddrInUse)
	}
	if err != nil {
		return fail(err)
	}
	l := &listener{
		dev: d, l: nl,
		slots: make(chan struct{}, backlog+startupRoom), queue: make(chan *connRequest, backlog), done: make(chan struct{}),
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		nl.Close()
		return fail(rdma.ErrClosed)
	}
	d.listeners[l] = struct{}{}
	d.mu.Unlock()
	l.wg.Add(1)
	go l.serve()
	return l, nil
}

// Addr is the listening "host:port".
func (l *listener) Addr() string { return l.l.Addr() }

func (l *listener) serve() {
	defer l.wg.Done()
	for {
		c, err := l.l.Accept()
		if err != nil {
			select {
			case <-l.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, or a connection that died: go on, but not in a spin
				continue
			}
		}
		if !l.takeSlot() {
			c.Close()
			return
		}
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			defer func() { <-l.slots }()
			l.request(c)
		}()
	}
}

// silentPeer is a socket whose Request has not come yet.
type silentPeer struct {
	conn  stream.Opening
	since time.Time
}

// takeSlot waits for a slot, at the cost of the longest silent socket if there
// is none. It is false when the listener closes.
func (l *listener) takeSlot() bool {
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

// evict wakes the reader of the longest silent socket, which then closes it,
// unless that one came only just now. It returns when to look again.
func (l *listener) evict(now time.Time) time.Duration {
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

// await reads the Request of a socket, within requestTimeout, and until the
// socket is evicted or the listener closes.
// first is what came, as far as it was read.
func (l *listener) await(c stream.Opening) (f *mpa.Frame, first []byte, err error) {
	now := time.Now()
	l.mu.Lock()
	c.SetDeadline(now.Add(requestTimeout))
	select {
	case <-l.done:
		c.SetDeadline(time.Unix(1, 0))
	default:
	}
	l.silent = append(l.silent, silentPeer{c, now})
	l.mu.Unlock()
	var seen bytes.Buffer
	f, err = readFrame(io.TeeReader(c, &seen))
	l.mu.Lock()
	l.silent = slices.DeleteFunc(l.silent, func(s silentPeer) bool { return s.conn == c })
	l.mu.Unlock()
	if err == nil {
		err = c.SetDeadline(time.Time{})
	}
	return f, seen.Bytes(), err
}

// OnStranger hands peers that speak something else to the listener's user, with the
// first octets that came, the header of an MPA frame long. answer runs in a goroutine
// of the listener, within strangerTimeout and until the listener closes; the connection is
// closed behind it. Without it they are cut off in silence (RFC 5044 §7.1.2).
func (l *listener) OnStranger(answer func(c net.Conn, first []byte)) { l.stranger.Store(&answer) }

// strangerTimeout bounds the answer to a peer that speaks something else. Arbitrary.
const strangerTimeout = 2 * time.Second

func (l *listener) answerStranger(c stream.Opening, first []byte) {
	answer := l.stranger.Load()
	if answer == nil || c.SetDeadline(time.Now().Add(strangerTimeout)) != nil {
		return
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-l.done:
			c.Close()
		case <-over:
		}
	}()
	(*answer)(c, first)
	close(over)
	<-watched
}

// request reads one MPA Request and queues it. Anything else closes the socket
// without an answer (RFC 5044 §7.1.2 rules 2 and 5).
func (l *listener) request(c stream.Opening) {
	f, first, err := l.await(c)
	if errors.Is(err, rdma.ErrProtocol) {
		l.answerStranger(c, first)
	}
	if err != nil || f.Reply {
		c.Close()
		return
	}
	// What the peer asks; the depths that hold are settled by Accept.
	ask := mpa.Config{CRC: !l.dev.cfg.NoCRC, Markers: l.dev.cfg.Markers, RTRWrite: true, RTRRead: true, IRD: maxRDAtom, ORD: maxRDAtom}
	n, err := ask.HandleRequest(f)
	if err != nil {
		c.Close()
		return
	}
	offer := cutOffer(&n)
	r := &connRequest{l: l, conn: c, req: f, ask: n, offer: offer}
	r.expire = time.AfterFunc(time.Hour, func() { r.Reject(context.Background(), nil) })
	r.expire.Reset(answerTimeout) // it may run from here on, and stops itself
	select {
	case l.queue <- r:
	default:
		r.Reject(context.Background(), nil) // backlog full
	}
}

// Accept returns the oldest request.
func (l *listener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	for {
		select {
		case r := <-l.queue:
			if r.taken.Load() {
				continue // answered for the application after answerTimeout
			}
			return r, nil
		default:
		}
		select {
		case r := <-l.queue:
			if !r.taken.Load() {
				return r, nil
			}
		case <-l.done:
			return nil, &rdma.OpError{Op: "accept", Object: l.Addr(), Err: rdma.ErrClosed}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close stops listening and refuses the requests that wait.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.l.Close()
		l.mu.Lock()
		for _, s := range l.silent {
			s.conn.SetDeadline(time.Unix(1, 0))
		}
		l.mu.Unlock()
		l.wg.Wait()
		for {
			select {
			case r := <-l.queue:
				r.Reject(context.Background(), nil)
				continue
			default:
			}
			break
		}
		l.dev.mu.Lock()
		delete(l.dev.listeners, l)
		l.dev.mu.Unlock()
	})
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
	taken  claim
}

// Param is what the peer asks, seen from this side: its ORD is the IRD it
// needs here. Without an enhanced Request the limits are unknown and 0.
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

// RemoteAddr is the initiator.
func (r *connRequest) RemoteAddr() string { return r.conn.RemoteAddr().String() }

// Accept replies and opens the stream of the QP.
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
	if !r.taken.take() {
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

// Reject replies with R set and closes.
func (r *connRequest) Reject(ctx context.Context, private []byte) error {
	fail := func(err error) error {
		return &rdma.OpError{Op: "reject", Object: r.RemoteAddr(), Err: err}
	}
	if len(private) > r.l.dev.caps.MaxPrivate {
		return fail(rdma.ErrInvalid)
	}
	if !r.taken.take() {
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

// claim is a flag that one caller gets.
type claim struct{ atomic.Bool }

func (c *claim) take() bool { return c.CompareAndSwap(false, true) }
