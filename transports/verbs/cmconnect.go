//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cmParam is a wish as rdma_connect(3) and rdma_accept(3) take it.
func (q *qp) cmParam(p *rdma.ConnParam) C.struct_va_cm_param {
	c := C.struct_va_cm_param{responder_resources: C.uint8_t(p.IRD), initiator_depth: C.uint8_t(p.ORD),
		retry_count: C.uint8_t(q.dev.cfg.Retry), rnr_retry_count: C.uint8_t(p.RNRRetry), qp_num: C.uint32_t(q.num)}
	if q.srq != nil {
		c.srq = 1
	}
	return c
}

func (q *qp) connectCM(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	for try := 1; ; try++ {
		id, err := q.dev.cm.newID()
		if err != nil {
			return p, err
		}
		got, err := q.initiateCM(ctx, id, addr, p)
		if err == nil {
			return got, nil
		}
		gone := q.dev.discard(id)
		if try < portTries && errors.Is(err, syscall.EADDRINUSE) && ctx.Err() == nil {
			<-gone // at once: the call has returned, and no peer was asked
			continue
		}
		q.mu.Lock()
		q.discarded = gone
		q.mu.Unlock()
		return got, err
	}
}

// discard destroys an ID in the background: siw waits up to 10 s for the peer's answer.
func (d *Device) discard(id *cmID) (gone chan struct{}) {
	gone = make(chan struct{})
	d.group.Go(func() {
		defer close(gone)
		id.close()
	})
	return gone
}

func (q *qp) initiateCM(ctx context.Context, id *cmID, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	if err := q.dev.cm.reach(ctx, id, addr); err != nil {
		return p, err
	}
	if err := q.request(ctx, id, &p); err != nil {
		return p, err
	}
	answer := C.VA_CM_CONNECT_RESPONSE
	if q.dev.iwarp {
		answer = C.VA_CM_ESTABLISHED // the driver has moved the QP
	}
	e, err := id.await(ctx, answer)
	if err != nil {
		return p, err
	}
	if q.dev.found.swapsDepths {
		e.ird, e.ord = e.ord, e.ird
	}
	// The event names the peer's side turned round: its IRD is our ORD.
	got := negotiate(&p, e.ord, e.ird, e.private)
	if !q.dev.iwarp {
		err := q.follow(id, &got)
		if err == nil {
			err = id.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_establish(id) })
		}
		if err != nil {
			q.spoilt()
			return got, err
		}
	}
	q.join(cmLink{id}, &got)
	id.follow(q.gone)
	if q.dev.found.nudges {
		q.nudge()
	}
	return got, nil
}

// request sends the connect. siw makes its TCP connection in the call, which goes on when ctx ends.
func (q *qp) request(ctx context.Context, id *cmID, p *rdma.ConnParam) error {
	param := q.cmParam(p)
	private := append([]byte(nil), p.PrivateData...)
	connect := func() error {
		return id.do(func(id *C.struct_va_cm_id) C.int {
			return C.vb_cm_connect(id, &param, unsafe.Pointer(unsafe.SliceData(private)), C.int(len(private)))
		})
	}
	if !q.dev.iwarp {
		return failedConnect(connect())
	}
	done := make(chan error, 1)
	q.dev.group.Go(func() { done <- connect() })
	select {
	case err := <-done:
		return failedConnect(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: no answer in time: %w", rdma.ErrUnreachable, ctx.Err())
	}
}

func failedConnect(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
}

// reach resolves the address and the route, and checks that they lead through this device: rdma_cm chooses by address.
func (m *manager) reach(ctx context.Context, id *cmID, addr string) error {
	to, err := resolve(ctx, addr)
	if err != nil {
		return err
	}
	dst := sockaddr(to)
	ms := C.int(answerTimeout / time.Millisecond)
	if deadline, ok := ctx.Deadline(); ok {
		ms = C.int(max(1, time.Until(deadline)/time.Millisecond))
	}
	if err := id.do(func(id *C.struct_va_cm_id) C.int {
		return C.vb_cm_resolve_addr(id, nil, unsafe.Pointer(&dst[0]), ms)
	}); err != nil {
		return failed(opResolve, to.Addr().String(), err)
	}
	if _, err := id.await(ctx, C.VA_CM_ADDR_RESOLVED); err != nil {
		return err
	}
	through := ""
	id.do(func(id *C.struct_va_cm_id) C.int { through = C.GoString(C.vb_name(id.verbs)); return 0 })
	if through != m.dev.dev {
		return &rdma.AdviceError{Err: fmt.Errorf("%w: rdma_cm leads there through %s, not %s", rdma.ErrUnreachable,
			through, m.dev.dev), Try: fmt.Sprintf("an address of the network of %s", m.dev.dev)}
	}
	if err := id.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_resolve_route(id, ms) }); err != nil {
		return failed(opResolve, to.Addr().String(), err)
	}
	_, err = id.await(ctx, C.VA_CM_ROUTE_RESOLVED)
	return err
}

// follow takes the attributes that rdma_cm knows, with our own rights, retries and negotiated depths.
func (q *qp) follow(id *cmID, p *rdma.ConnParam) error {
	for _, s := range []C.int{C.VA_QPS_INIT, C.VA_QPS_RTR, C.VA_QPS_RTS} {
		var a C.struct_va_qp_attr
		var mask C.int
		if err := id.do(func(id *C.struct_va_cm_id) C.int { return C.vb_cm_qp_attr(id, s, &a, &mask) }); err != nil {
			return failed("ask rdma_cm for "+waistState[s].String(), q.object(), err)
		}
		switch s {
		case C.VA_QPS_INIT:
			a.qp_access_flags = C.uint(q.accessFlags())
			mask |= C.VA_QP_ACCESS_FLAGS
		case C.VA_QPS_RTR:
			a.max_dest_rd_atomic = C.uint8_t(p.IRD)
			a.min_rnr_timer = minRNRTimer
			mask |= C.VA_QP_MAX_DEST_RD_ATOMIC | C.VA_QP_MIN_RNR_TIMER
			mask &^= roceBits
		case C.VA_QPS_RTS:
			a.max_rd_atomic = C.uint8_t(p.ORD)
			a.rnr_retry = C.uint8_t(p.RNRRetry)
			a.retry_cnt = C.uint8_t(q.dev.cfg.Retry)
			a.timeout = C.uint8_t(q.dev.cfg.Timeout)
			mask |= C.VA_QP_MAX_RD_ATOMIC | C.VA_QP_RNR_RETRY | C.VA_QP_RETRY_CNT | C.VA_QP_TIMEOUT
		}
		if err := modify(q.c.qp, &a, mask); err != nil {
			return failed("move qp to "+waistState[s].String(), q.object(), err)
		}
	}
	return nil
}

// roceBits are the kernel's own attributes (MAC, VLAN) that some versions of rdma_ucm let slip into the mask.
const roceBits = 0xf << 21

// nudges are the pauses before each nudge of a new connection. siw_accept answers the initiator first, and only then
// has TCP call it for what arrives. Data that is there by then is noticed with the next that comes, which is never
// where the initiator waits for an answer. The gap is some microseconds, or as long as the accepting thread is kept off
// its CPU.
var nudges = [...]time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// nudge has the initiator write nothing a few times. Whatever the key and address, such
// a write changes nothing (RFC 5041 §5.2).
func (q *qp) nudge() {
	q.dev.group.Go(func() {
		for _, pause := range nudges {
			select {
			case <-time.After(pause):
			case <-q.ended:
				return
			}
			q.sendMu.Lock()
			stands := !q.isClosed() && q.now() == rdma.QPRTS
			if stands {
				C.vb_nudge(q.c) // a full queue is on its way itself
			}
			q.sendMu.Unlock()
			if !stands {
				return
			}
		}
	})
}
