//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/acceptor"
)

type cmListener struct {
	m    *manager
	id   *cmID
	addr string
	once sync.Once
	*acceptor.Acceptor[*net.TCPConn, *cmRequest]
}

type cmRequest struct {
	l      *cmListener
	id     *cmID
	param  rdma.ConnParam
	remote string
	expire *time.Timer

	mu       sync.Mutex
	answered bool
}

// kernelBacklog is how many requests more than ours the kernel may hold: the loop takes them at once and refuses what
// is too much. siw corrupts its listener when the kernel's own list is full.
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

// portTries bounds how often another port is asked for. On iWARP rdma_cm chooses a port that none of its own uses, and
// only then TCP is asked, which refuses a port of a connection, even of one in TIME-WAIT: with half of all ports in
// use, one attempt in 65536 fails.
const portTries = 16

func (m *manager) listenAt(at netip.AddrPort, backlog int) (*cmListener, error) {
	id, err := m.newID()
	if err != nil {
		return nil, err
	}
	l := &cmListener{m: m, id: id, Acceptor: acceptor.New[*net.TCPConn, *cmRequest](acceptor.Limits{Backlog: backlog})}
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

// requested queues a new connection request, or refuses it: when nobody listens any more, when too many wait, or when
// it came through another device, which a wildcard address listens on too.
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
		if r.l.Offer(r) == nil {
			return
		}
		r.expire.Stop()
	}
	id.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_reject(id, nil, 0) })
	id.closePassive()
}

func (l *cmListener) Addr() string { return l.addr }

func (l *cmListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	for {
		r, err := l.Next(ctx)
		if err != nil {
			return nil, &rdma.OpError{Op: "accept", Object: l.addr, Err: err}
		}
		if r.waits() {
			return r, nil
		}
		r.id.closePassive()
	}
}

// Close refuses the requests that wait and frees the address. One that comes at this moment is refused when it expires.
func (l *cmListener) Close() error {
	l.once.Do(func() {
		l.Acceptor.Close(func() error { return nil }, func(r *cmRequest) { r.Reject(context.Background(), nil) })
		l.id.closePassive()
		l.m.dev.count(-1)
	})
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

func (r *cmRequest) Param() rdma.ConnParam {
	p := r.param
	p.PrivateData = slices.Clone(p.PrivateData)
	return p
}

func (r *cmRequest) RemoteAddr() string { return r.remote }

// Accept joins a QP. A call refused for its arguments leaves the request open.
func (r *cmRequest) Accept(ctx context.Context, peer rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	return r.l.m.dev.accept(ctx, r.remote, peer, p, func(ctx context.Context, q *qp) (rdma.ConnParam, error) {
		if err := r.take(); err != nil {
			return rdma.ConnParam{}, err
		}
		got, err := r.accept(ctx, q, p)
		if err != nil {
			r.id.closePassive()
		}
		return got, err
	})
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
