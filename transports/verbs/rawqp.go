//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// rawQP is a QP that is led through its states by hand, and its own peer.
type rawQP struct{ *qp }

var rawMask = map[rdma.QPAttrs]C.int{
	rdma.AttrPKey: C.VA_QP_PKEY_INDEX, rdma.AttrPort: C.VA_QP_PORT, rdma.AttrAccess: C.VA_QP_ACCESS_FLAGS,
	rdma.AttrPath: C.VA_QP_AV, rdma.AttrPathMTU: C.VA_QP_PATH_MTU, rdma.AttrDestQP: C.VA_QP_DEST_QPN,
	rdma.AttrRQPSN:           C.VA_QP_RQ_PSN,
	rdma.AttrMaxDestRDAtomic: C.VA_QP_MAX_DEST_RD_ATOMIC, rdma.AttrMinRNRTimer: C.VA_QP_MIN_RNR_TIMER,
	rdma.AttrSQPSN:   C.VA_QP_SQ_PSN,
	rdma.AttrTimeout: C.VA_QP_TIMEOUT, rdma.AttrRetries: C.VA_QP_RETRY_CNT, rdma.AttrRNRRetries: C.VA_QP_RNR_RETRY,
	rdma.AttrMaxRDAtomic: C.VA_QP_MAX_RD_ATOMIC,
}

var rawStates = map[rdma.QPState]C.int{rdma.QPReset: C.VA_QPS_RESET, rdma.QPInit: C.VA_QPS_INIT,
	rdma.QPRTR: C.VA_QPS_RTR, rdma.QPRTS: C.VA_QPS_RTS, rdma.QPSQD: C.VA_QPS_SQD, rdma.QPErr: C.VA_QPS_ERR}

// NewRawQP makes a queue pair in RESET. An iWARP device has none: what its QP needs is a TCP connection.
func (d *Device) NewRawQP(cfg rdma.QPConfig) (rdma.RawQP, error) {
	if !d.caps.RawQP {
		return nil, failed(opCreateQP, d.dev, rdma.ErrNotSupported)
	}
	q, err := d.newQP(cfg, true)
	if err != nil {
		return nil, failed(opCreateQP, d.dev, err)
	}
	return rawQP{q}, nil
}

// Modify moves the QP with usual values of the attributes.
func (q rawQP) Modify(to rdma.QPState, given rdma.QPAttrs) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed() {
		return &rdma.OpError{Op: "modify", Object: q.object(), Err: rdma.ErrClosed}
	}
	a, err := q.usual()
	if err == nil {
		a.qp_state = rawStates[to]
		mask := C.int(C.VA_QP_STATE)
		for _, one := range given.Each() {
			mask |= rawMask[one]
		}
		err = modify(q.c.qp, &a, mask)
	}
	switch {
	case err == syscall.EINVAL:
		err = fmt.Errorf("%s to %s with %s: %w", q.now(), to, given, rdma.ErrInvalid)
		fallthrough
	case err != nil:
		return &rdma.OpError{Op: "modify", Object: q.object(), Err: err}
	}
	switch to {
	case rdma.QPErr:
		q.failed()
	case rdma.QPReset:
		q.forget()
		fallthrough
	default:
		q.state.Store(uint32(to))
	}
	q.tells = q.tells || to != rdma.QPReset && q.ask() == to
	return nil
}

const rawReads = 4

func (q *qp) usual() (C.struct_va_qp_attr, error) {
	d := q.dev
	gid, err := d.gid(unspecified)
	if err != nil {
		return C.struct_va_qp_attr{}, err
	}
	self := endpoint{QPN: q.num, LID: d.port.lid, GID: gid.GID, MTU: uint32(max(d.port.mtu, 256))}
	a := d.routed(&self, gid.Index, rawReads)
	a.port_num, a.qp_access_flags = C.uint8_t(d.port.num), C.uint(q.accessFlags())
	a.max_rd_atomic, a.rnr_retry = rawReads, 7
	a.timeout, a.retry_cnt = C.uint8_t(d.cfg.Timeout), C.uint8_t(d.cfg.Retry)
	return a, nil
}

// forget frees the places of what was posted and will never complete. Completions that the device has are taken first.
func (q *qp) forget() {
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	for c, queue := range map[*C.struct_vb_queue]*cq{&q.c.sq: q.send, &q.c.rq: q.recv} {
		queue.mu.Lock()
		if !queue.closed {
			queue.collect()
		}
		queue.letGo(c)
		C.vb_forget(c)
		queue.mu.Unlock()
	}
}
