//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Bounds of ours: adapters advertise depths that cost gigabytes when many queues have them.
const (
	limitQPWR   = 16384
	limitCQE    = 1 << 18
	limitSRQWR  = 16384
	limitInline = 1024
	limitRDAtom = 128
)

// Private data that fits in a request, an answer and a refusal (rdma_connect(3), rdma_accept(3)): on InfiniBand the
// request leaves 56 bytes beside rdma_cm's own header. The length field of iWARP's calls ends at 255, of which the
// enhanced header of RFC 6581 takes 4.
const (
	privateIB    = 56
	privateIWARP = 251
)

// vendorSIW is Linux siw (drivers/infiniband/sw/siw/siw.h).
const vendorSIW = 0x626d74

type findings struct {
	flushSend, flushRecv bool // requests posted in ERR complete flushed (IBTA C10-96, C10-97)
	swapsDepths          bool // the answer to a connect has IRD and ORD exchanged
	// toldFrom is the length from which a device reads unsignalled messages too late (see findCaps); 0: none.
	toldFrom int
	noKey    bool // siw.c
	nudges   bool // a connection needs them: nudge
}

// probed remembers what devices can do: finding out makes and destroys a dozen queue pairs.
var probed struct {
	sync.Mutex
	known map[string]knowledge
}

type knowledge struct {
	caps  rdma.Caps
	found findings
}

// findCaps computes the abilities. What a device advertises but does not keep is found by trying.
func (d *Device) findCaps() error {
	probed.Lock()
	defer probed.Unlock()
	key := fmt.Sprintf("%s/%d/%v", d.dev, d.port.num, d.cfg.CM)
	if k, known := probed.known[key]; known {
		d.caps, d.found = k.caps, k.found
		d.atFault()
		return nil
	}
	var a C.struct_va_device_attr
	if rc := C.vb_query_device(d.ctx, &a); rc != 0 {
		return &rdma.OpError{Op: "query", Object: d.dev, Err: errno(rc)}
	}
	d.caps = d.advertised(&a)
	// siw_cm_upcall reports a reply's depths the other way round than a request's, and than other drivers do.
	d.found.swapsDepths = a.vendor_id == vendorSIW
	if a.vendor_id == vendorSIW {
		d.found.noKey, d.found.nudges = true, true
		d.atFault()
		// siw_qp_prepare_tx hands TCP the pages of an unsignalled message of a page or more, not a copy, and TCP reads
		// them as late as at a retransmission. A later completion proves nothing of them, although IBTA 10.7.3.1 lets
		// the caller write to them by then. Seen with Linux 6.12.117; 6.1.192 copies all the same, since its TCP does
		// not know the flag MSG_SPLICE_PAGES.
		d.found.toldFrom = os.Getpagesize()
	}
	if err := d.probe(); err != nil {
		return &rdma.OpError{Op: "probe", Object: d.dev, Err: err}
	}
	if probed.known == nil {
		probed.known = map[string]knowledge{}
	}
	probed.known[key] = knowledge{d.caps, d.found}
	return nil
}

func (d *Device) atFault() {
	if d.found.noKey {
		C.vb_has_no_key(d.table)
	}
}

func (d *Device) advertised(a *C.struct_va_device_attr) rdma.Caps {
	c := rdma.Caps{
		Label: label(d.dev),
		Ops:   rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		Features: rdma.FeatEvents | rdma.FeatSolicited | rdma.FeatFence | rdma.FeatAsyncEvents |
			rdma.FeatLastByteLast | rdma.FeatPingPong,
		Unaided:       true,
		PingPongNS:    pingPongOverhead(),
		PingPongClock: pingPongCounter(),
		MaxQP:         int(a.max_qp),
		MaxQPWR:       min(limitQPWR, int(a.max_qp_wr)-1), // one place is the drain marker's
		MaxCQE:        min(limitCQE, int(a.max_cqe)),
		MaxSGE:        min(rdma.MaxSGE, int(a.max_sge)),
		MaxRDAtom:     min(limitRDAtom, int(a.max_qp_rd_atom), int(a.max_qp_init_rd_atom)),
		MaxPrivate:    maxExchangePrivate,
		MaxMsg:        d.port.maxMsg,
	}
	if c.Label == rdma.LabelSoft && !placesUpwards() {
		c.Features &^= rdma.FeatLastByteLast
	}
	c.MaxReadSGE = max(1, min(c.MaxSGE, int(a.max_sge_rd)))
	if a.max_srq > 0 && a.max_srq_wr > 0 && int(a.max_srq_sge) >= c.MaxSGE {
		c.Features |= rdma.FeatSRQ
		c.MaxSRQWR = min(limitSRQWR, int(a.max_srq_wr))
	}
	if d.iwarp {
		c.Completion = rdma.CompletionLocal
		c.MaxReadSGE = 1 // one STag a Read Request (RFC 5040 §4.4)
		c.MaxPrivate = privateIWARP
		if a.vendor_id != vendorSIW {
			c.Features |= rdma.FeatSinkNeedsRemoteWrite // cxgb4, irdma
		} else {
			c.Features &^= rdma.FeatSolicited // siw_rqe_complete never tells that a receive was solicited
		}
	} else {
		c.Ops |= rdma.Ops(rdma.OpSendImm, rdma.OpWriteImm)
		c.Features |= rdma.FeatRNRRetry | rdma.FeatPassiveFirst | rdma.FeatImmPayload
		if a.atomic_cap != C.VA_ATOMIC_NONE {
			c.Ops |= rdma.Ops(rdma.OpFetchAdd, rdma.OpCmpSwap)
		}
		if d.cfg.CM {
			c.MaxPrivate = privateIB
		}
	}
	if c.MaxReadSGE > 1 {
		c.Features |= rdma.FeatReadMultiSGE
	}
	return c
}

// label tells software devices, which hang below no bus, from hardware.
func label(dev string) rdma.Label {
	path, err := filepath.EvalSymlinks(filepath.Join(sysRoot, "class/infiniband", dev))
	if err == nil && strings.Contains(path, "/virtual/") {
		return rdma.LabelSoft
	}
	if err != nil && !os.IsNotExist(err) {
		return rdma.LabelSoft // the weaker claim
	}
	return rdma.LabelDevice
}

// probe lowers limits to what one queue pair can have at once, and finds the inline size.
func (d *Device) probe() error {
	var rc C.int
	cq := C.vb_create_cq(d.ctx, d.table, 4, &rc)
	if cq == nil {
		return failed(opCreateCQ, "", errno(rc))
	}
	defer C.vb_destroy_cq(cq)
	pd := d.pds[0].pd
	try := func(depth, inline int) error {
		c := d.queueCap(depth, depth, inline)
		if rc := C.vb_try_qp(pd, cq.cq, &c); rc != 0 {
			return errno(rc)
		}
		if int(c.max_inline_data) < inline {
			return syscall.EINVAL
		}
		return nil
	}
	if err := try(1, 0); err != nil {
		return failed(opCreateQP, "", err)
	}
	// The largest inline size of a power of two, then as much more as fits.
	inline, step := 0, limitInline
	for ; step >= 4; step /= 2 {
		if inline+step <= limitInline && try(1, inline+step) == nil {
			inline += step
		}
	}
	for d.caps.MaxQPWR > 1 && try(d.caps.MaxQPWR, inline) != nil {
		d.caps.MaxQPWR /= 2
	}
	d.caps.MaxInline = inline
	if inline > 0 {
		d.caps.Features |= rdma.FeatInline
	}
	if d.caps.Features.Has(rdma.FeatSRQ) {
		d.probeSRQ(pd)
	}
	d.caps.OnDemand = d.takesFaults(pd) // needs the operations and features
	d.found.flushSend = d.flushes(pd, cq, true)
	d.found.flushRecv = d.flushes(pd, cq, false)
	d.caps.RawQP = !d.iwarp // whose QP would need a TCP connection
	if !d.iwarp && d.canDrain(pd, cq) {
		d.caps.Features |= rdma.FeatSQD
	}
	return nil
}

// queueCap is what a queue pair of these depths asks of the device. One place of each queue is a drain marker's.
func (d *Device) queueCap(send, recv, inline int) C.struct_va_qp_cap {
	return C.struct_va_qp_cap{max_send_wr: C.uint32_t(send + 1), max_recv_wr: C.uint32_t(recv + 1),
		max_send_sge: C.uint32_t(d.caps.MaxSGE), max_recv_sge: C.uint32_t(d.caps.MaxSGE),
		max_inline_data: C.uint32_t(inline)}
}

func (d *Device) probeSRQ(pd *C.struct_va_pd) {
	for ; d.caps.MaxSRQWR > 0; d.caps.MaxSRQWR /= 2 {
		var rc C.int
		if s := C.vb_create_srq(pd, d.table, C.uint32_t(d.caps.MaxSRQWR), C.uint32_t(d.caps.MaxSGE), 0, &rc); s != nil {
			C.vb_destroy_srq(s, d.table)
			return
		}
	}
	d.caps.Features &^= rdma.FeatSRQ
}

func (d *Device) flushes(pd *C.struct_va_pd, cq *C.struct_vb_cq, send bool) bool {
	q := d.trialQP(pd, cq)
	if q == nil {
		return false
	}
	defer C.vb_destroy_qp(q)
	defer C.vb_unlist(q, d.table)
	fail := C.struct_va_qp_attr{qp_state: C.VA_QPS_ERR}
	if toInit(q.qp, d.port.num, 0) != nil || modify(q.qp, &fail, C.VA_QP_STATE) != nil {
		return false
	}
	var p C.struct_vb_posted
	if send {
		p = C.vb_post_send(q, &C.struct_vb_send{op: C.uint8_t(rdma.OpSend), flags: C.uint8_t(rdma.Signaled)}, 1)
	} else {
		p = C.vb_post_recv(q, &C.struct_vb_recv{}, 1)
		modify(q.qp, &fail, C.VA_QP_STATE) // as kick does
	}
	return p.n == 1 && completes(cq, rdma.StatusWRFlushErr)
}

func (d *Device) trialQP(pd *C.struct_va_pd, cq *C.struct_vb_cq) *C.struct_vb_qp {
	c := d.queueCap(1, 1, 0)
	var rc C.int
	return C.vb_create_qp(pd, d.table, cq, cq, nil, 1, 1, &c, 0, 0, flag(d.iwarp), 0, &rc)
}

func completes(cq *C.struct_vb_cq, want rdma.Status) bool {
	var wc C.struct_vb_wc
	for end := time.Now().Add(trialTimeout); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if C.vb_poll(cq, &wc, 1) == 1 {
			return rdma.Status(wc.status) == want
		}
	}
	return false
}

// trialTimeout is far longer than a device needs to complete a request to itself.
const trialTimeout = 200 * time.Millisecond

// canDrain walks a queue pair that is its own peer to SQD and back, with a write of
// nothing in between that has to be held and then sent. Some devices (rxe of Linux
// 6.1) take every step and forget the write.
func (d *Device) canDrain(pd *C.struct_va_pd, cq *C.struct_vb_cq) bool {
	q := d.trialQP(pd, cq)
	if q == nil {
		return false
	}
	defer C.vb_destroy_qp(q)
	defer C.vb_unlist(q, d.table)
	gid, err := d.gid(unspecified)
	if err != nil {
		return false
	}
	self := endpoint{QPN: uint32(q.qp.qp_num), LID: d.port.lid, GID: gid.GID, MTU: uint32(max(d.port.mtu, 256))}
	for _, step := range []func() error{
		func() error { return toInit(q.qp, d.port.num, 0) },
		func() error { return d.toRTR(q.qp, &self, gid.Index, 1) },
		func() error { return d.toRTS(q.qp, 0, 1, 0) },
		func() error { return toSQD(q.qp) },
	} {
		if step() != nil {
			return false
		}
	}
	var wc C.struct_vb_wc
	write := C.struct_vb_send{op: C.uint8_t(rdma.OpWrite), flags: C.uint8_t(rdma.Signaled)}
	if p := C.vb_post_send(q, &write, 1); p.n != 1 {
		return false
	}
	time.Sleep(2 * time.Millisecond)
	if C.vb_poll(cq, &wc, 1) != 0 || retried(func() error { return fromSQD(q.qp) }) != nil {
		return false
	}
	return completes(cq, rdma.StatusSuccess)
}
