//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cmListener is a listening ID of rdma_cm.
type cmListener struct {
	m    *manager
	id   *cmID
	addr string
	room int // requests that may wait

	mu     sync.Mutex
	queue  []*cmRequest
	closed bool
	wake   chan struct{} // token when queue or closed changed
}

// cmRequest is a peer that waits for an answer.
type cmRequest struct {
	l      *cmListener
	id     *cmID
	param  rdma.ConnParam
	remote string
	expire *time.Timer

	mu       sync.Mutex
	answered bool
}

// kernelBacklog is how many requests more than ours the kernel may hold: the loop
// takes them at once and refuses what is too much. siw corrupts its listener when
// the kernel's own list is full.
const kernelBacklog = 256

func (m *manager) listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	at, err := resolve(ctx, bindAddr(addr, m.dev.addrs()))
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		l, err := m.listenAt(at, backlog)
		if err == nil {
			return l, nil
		}
		if at.Port() != 0 || !errors.Is(err, rdma.ErrAddrInUse) || try == portTries {
			return nil, err
		}
	}
}

// portTries bounds how often another port is asked for. On iWARP rdma_cm chooses a port
// that none of its own uses, and only then TCP is asked, which refuses a port of a
// connection, even of one in TIME-WAIT: with half of all ports in use, one
// attempt in 65536 fails.
const portTries = 16

func (m *manager) listenAt(at netip.AddrPort, backlog int) (*cmListener, error) {
	id, err := m.newID()
	if err != nil {
		return nil, err
	}
	l := &cmListener{m: m, id: id, room: backlog, wake: make(chan struct{}, 1)}
	id.listen = l
	sa := sockaddr(at)
	var real netip.AddrPort
	err = id.do(func(id *C.struct_va_cm_id) C.int {
		rc := C.vb_cm_bind(id, unsafe.Pointer(&sa[0]), flag(at.Addr().Is6()))
		if rc == 0 {
			rc = C.vb_cm_listen(id, C.int(backlog+kernelBacklog))
		}
		real = sockaddrAt(&id.src)
		return rc
	})
	if err != nil {
		id.closePassive()
		return nil, failed(opBind, at.String(), err)
	}
	l.addr = netip.AddrPortFrom(at.Addr(), real.Port()).String()
	return l, nil
}

// requested queues a new connection request, or refuses it: when nobody listens
// any more, when too many wait, or when it came through another device, which a
// wildcard address listens on too.
func (m *manager) requested(listening *cmID, ev *C.struct_vb_cm_event, e cmEvent) {
	id := m.add(ev.id)
	C.vb_cm_set_context(ev.id, C.uint64_t(id.key))
	r := &cmRequest{id: id, param: rdma.ConnParam{PrivateData: e.private, IRD: e.ird, ORD: e.ord, RNRRetry: e.rnr},
		remote: sockaddrAt(&ev.id.dst).String()}
	if listening != nil && listening.listen != nil && C.GoString(C.vb_name(ev.verbs)) == m.dev.dev {
		r.l = listening.listen
		r.mu.Lock() // take reads the timer, and may be called by it
		r.expire = time.AfterFunc(answerTimeout, func() { r.Reject(context.Background(), nil) })
		r.mu.Unlock()
		if r.l.push(r) {
			return
		}
		r.expire.Stop()
	}
	id.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_reject(id, nil, 0) })
	id.closePassive()
}

func (l *cmListener) push(r *cmRequest) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.queue) >= l.room {
		return false
	}
	l.queue = append(l.queue, r)
	l.signal()
	return true
}

func (l *cmListener) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Addr is "host:port" with the real port.
func (l *cmListener) Addr() string { return l.addr }

// Accept takes the oldest request that still waits.
func (l *cmListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	fail := func(err error) (rdma.ConnRequest, error) {
		return nil, &rdma.OpError{Op: "accept", Object: l.addr, Err: err}
	}
	for {
		l.mu.Lock()
		for len(l.queue) > 0 {
			r := l.queue[0]
			l.queue = l.queue[1:]
			if r.waits() {
				if len(l.queue) > 0 {
					l.signal()
				}
				l.mu.Unlock()
				return r, nil
			}
			r.id.closePassive()
		}
		closed := l.closed
		if closed {
			l.signal() // for the next Accept
		}
		l.mu.Unlock()
		if closed {
			return fail(rdma.ErrClosed)
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return fail(ctx.Err())
		}
	}
}

// Close refuses the requests that wait and frees the address.
func (l *cmListener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	waiting := l.queue
	l.queue = nil
	l.signal()
	l.mu.Unlock()
	for _, r := range waiting {
		r.Reject(context.Background(), nil)
	}
	l.id.closePassive()
	l.m.dev.count(-1)
	return nil
}

// waits is false for a request that expired or whose peer has given up.
func (r *cmRequest) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.id.left:
		return false
	case e := <-r.id.events: // a connection that failed before it was answered
		return e.kind != C.VA_CM_UNREACHABLE && e.kind != C.VA_CM_CONNECT_ERROR && e.kind != C.VA_CM_REJECTED
	default:
		return !r.answered
	}
}

// take claims the right to answer.
func (r *cmRequest) take() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return rdma.ErrState
	}
	r.answered = true
	r.expire.Stop()
	return nil
}

// Param is what the peer asks, with a copy of its private data.
func (r *cmRequest) Param() rdma.ConnParam {
	p := r.param
	p.PrivateData = slices.Clone(p.PrivateData)
	return p
}

// RemoteAddr is the peer's address.
func (r *cmRequest) RemoteAddr() string { return r.remote }

// Accept joins a QP. A call refused for its arguments leaves the request open.
func (r *cmRequest) Accept(ctx context.Context, peer rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	fail := func(err error) (rdma.ConnParam, error) {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.remote, Err: err}
	}
	d := r.l.m.dev
	if err := d.checkParam(&p); err != nil {
		return fail(err)
	}
	q, err := d.ownQP(peer)
	if err != nil {
		return fail(err)
	}
	ctx, err = q.claim(ctx)
	if err != nil {
		return fail(err)
	}
	defer q.release()
	if err := r.take(); err != nil {
		return fail(err)
	}
	got, err := r.accept(ctx, q, p)
	if err != nil {
		r.id.closePassive()
		return fail(err)
	}
	return got, nil
}

func (r *cmRequest) accept(ctx context.Context, q *qp, p rdma.ConnParam) (rdma.ConnParam, error) {
	got := negotiate(&p, r.param.ORD, r.param.IRD, r.param.PrivateData)
	if !q.dev.iwarp {
		if err := q.follow(r.id, &got); err != nil {
			q.spoilt()
			return got, err
		}
	}
	param := q.cmParam(&got)
	private := slices.Clone(p.PrivateData)
	err := r.id.do(func(id *C.struct_va_cm_id) C.int {
		return C.vb_cm_accept(id, &param, unsafe.Pointer(unsafe.SliceData(private)), C.int(len(private)))
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
	} else {
		_, err = r.id.await(ctx, C.VA_CM_ESTABLISHED)
	}
	if err != nil {
		q.spoilt()
		return got, err
	}
	q.join(cmLink{r.id}, &got)
	r.id.follow(q.gone)
	return got, nil
}

// Reject refuses with private data.
func (r *cmRequest) Reject(ctx context.Context, privateData []byte) error {
	fail := func(err error) error { return &rdma.OpError{Op: "reject", Object: r.remote, Err: err} }
	if len(privateData) > r.l.m.dev.caps.MaxPrivate {
		return fail(fmt.Errorf("private data of %d bytes: %w", len(privateData), rdma.ErrInvalid))
	}
	if err := r.take(); err != nil {
		return fail(err)
	}
	private := slices.Clone(privateData)
	err := r.id.do(func(id *C.struct_va_cm_id) C.int {
		return C.vb_cm_reject(id, unsafe.Pointer(unsafe.SliceData(private)), C.int(len(private)))
	})
	r.id.closePassive()
	if err != nil {
		return fail(fmt.Errorf("%w: %w", rdma.ErrUnreachable, err))
	}
	return nil
}
