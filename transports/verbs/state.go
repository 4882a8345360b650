//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// waistState maps the states of ibv_modify_qp(3). SQE exists for unreliable services only.
var waistState = map[C.int]rdma.QPState{
	C.VA_QPS_RESET: rdma.QPReset, C.VA_QPS_INIT: rdma.QPInit, C.VA_QPS_RTR: rdma.QPRTR,
	C.VA_QPS_RTS: rdma.QPRTS, C.VA_QPS_SQD: rdma.QPSQD, C.VA_QPS_SQE: rdma.QPErr, C.VA_QPS_ERR: rdma.QPErr,
}

func (q *qp) now() rdma.QPState { return rdma.QPState(q.state.Load()) }

// State is a snapshot, taken from the device where that tells.
func (q *qp) State() rdma.QPState {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed() {
		return q.now()
	}
	return q.refresh()
}

// refresh learns whether the QP went to ERR by itself. The caller holds q.mu.
func (q *qp) refresh() rdma.QPState {
	s := q.now()
	if !q.tells || s == rdma.QPErr || s == rdma.QPInit {
		return s
	}
	if q.ask() == rdma.QPErr {
		q.enterErr() // it is there; what was posted since is flushed
	}
	return q.now()
}

// ask queries the device; QPReset when it does not say.
func (q *qp) ask() rdma.QPState {
	state := C.int(-1)
	if C.vb_query_state(q.c.qp, &state) != 0 {
		return rdma.QPReset
	}
	return waistState[state]
}

func (q *qp) trafficClass() (int, error) {
	var a C.struct_va_qp_attr
	rc := C.vb_query_av(q.c.qp, &a)
	return int(a.ah_attr.grh.traffic_class), errno(rc)
}

// enterErr moves the QP to ERR. The caller holds q.mu.
func (q *qp) enterErr() {
	q.failed()
	q.kick()
}

// kick tells a QP in ERR again: librxe hides receives from the kernel, which finds and flushes them by this.
func (q *qp) kick() {
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_ERR}
	// An error means that the device moved it there before, or is gone.
	C.vb_modify_qp(q.c.qp, &a, C.VA_QP_STATE)
}

func (q *qp) failed() {
	f := &q.dev.found
	if rdma.QPState(q.state.Swap(uint32(rdma.QPErr))) != rdma.QPErr && !(f.flushSend && f.flushRecv) {
		q.dev.group.Go(q.lapse)
	}
}

const lapseTime = 50 * time.Millisecond

// lapse gives up what reached a device that flushes nothing in ERR before ERR was known here.
func (q *qp) lapse() {
	time.Sleep(lapseTime)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed() || q.now() != rdma.QPErr {
		return // Close completes what is left, and RESET discards it
	}
	if !q.dev.found.flushSend {
		q.send.hold(&q.c.sq, true)
	}
	if !q.dev.found.flushRecv && q.srq == nil {
		q.recv.hold(&q.c.rq, true)
	}
}

func modify(qp *C.struct_va_qp, a *C.struct_va_qp_attr, mask C.int) error {
	return errno(C.vb_modify_qp(qp, a, mask))
}

func toInit(qp *C.struct_va_qp, port int, access C.int) error {
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_INIT, port_num: C.uint8_t(port), qp_access_flags: C.uint(access)}
	return modify(qp, &a, C.VA_QP_STATE|C.VA_QP_PKEY_INDEX|C.VA_QP_PORT|C.VA_QP_ACCESS_FLAGS)
}

// minRNRTimer is the code of 0.64 ms: what a sender without a receive waits before it tries again (IBTA table 45).
const minRNRTimer = 12
const hopLimit = 64

func (d *Device) routed(peer *endpoint, gidIndex, ird int) C.struct_va_qp_attr {
	mtu := min(d.port.mtu, int(peer.MTU))
	if d.cfg.MTU != 0 {
		mtu = min(mtu, d.cfg.MTU)
	}
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_RTR, path_mtu: C.int(mtuCode(mtu)), dest_qp_num: C.uint32_t(peer.QPN),
		rq_psn: C.uint32_t(peer.PSN), max_dest_rd_atomic: C.uint8_t(ird), min_rnr_timer: minRNRTimer}
	a.ah_attr.port_num = C.uint8_t(d.port.num)
	a.ah_attr.dlid = C.uint16_t(peer.LID)
	a.ah_attr.sl = C.uint8_t(d.cfg.SL)
	if d.port.ethernet || d.cfg.GIDIndex >= 0 {
		a.ah_attr.is_global = 1
		*(*[16]byte)(unsafe.Pointer(&a.ah_attr.grh.dgid)) = peer.GID
		a.ah_attr.grh.sgid_index = C.uint8_t(gidIndex)
		a.ah_attr.grh.hop_limit = hopLimit
		a.ah_attr.grh.traffic_class = C.uint8_t(d.cfg.TOS)
	}
	return a
}

func (d *Device) toRTR(qp *C.struct_va_qp, peer *endpoint, gidIndex, ird int) error {
	a := d.routed(peer, gidIndex, ird)
	return modify(qp, &a, C.VA_QP_STATE|C.VA_QP_AV|C.VA_QP_PATH_MTU|C.VA_QP_DEST_QPN|C.VA_QP_RQ_PSN|
		C.VA_QP_MAX_DEST_RD_ATOMIC|C.VA_QP_MIN_RNR_TIMER)
}

func (d *Device) toRTS(qp *C.struct_va_qp, psn uint32, ord, rnr int) error {
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_RTS, sq_psn: C.uint32_t(psn), max_rd_atomic: C.uint8_t(ord),
		rnr_retry: C.uint8_t(rnr), timeout: C.uint8_t(d.cfg.Timeout), retry_cnt: C.uint8_t(d.cfg.Retry)}
	return modify(qp, &a, C.VA_QP_STATE|C.VA_QP_TIMEOUT|C.VA_QP_RETRY_CNT|C.VA_QP_RNR_RETRY|C.VA_QP_SQ_PSN|
		C.VA_QP_MAX_RD_ATOMIC)
}

func toSQD(qp *C.struct_va_qp) error {
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_SQD, en_sqd_async_notify: 1}
	return modify(qp, &a, C.VA_QP_STATE|C.VA_QP_EN_SQD_ASYNC_NOTIFY)
}

func fromSQD(qp *C.struct_va_qp) error {
	a := C.struct_va_qp_attr{qp_state: C.VA_QPS_RTS}
	return modify(qp, &a, C.VA_QP_STATE)
}

func retried(f func() error) error {
	err := f()
	for i := 0; err == syscall.EINVAL && i < 100; i++ {
		time.Sleep(time.Millisecond)
		err = f()
	}
	return err
}

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
