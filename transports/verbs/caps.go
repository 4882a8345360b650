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

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Bounds of ours: adapters advertise depths that cost gigabytes when many queues
// have them.
const (
	limitQPWR   = 16384
	limitCQE    = 1 << 18
	limitSRQWR  = 16384
	limitInline = 1024
	limitRDAtom = 128
)

// Private data that fits in a request, an answer and a refusal (rdma_connect(3),
// rdma_accept(3)): on InfiniBand the request leaves 56 bytes beside rdma_cm's own
// header. The length field of iWARP's calls ends at 255, of which the enhanced
// header of RFC 6581 takes 4.
const (
	privateIB    = 56
	privateIWARP = 251
)

// vendorSIW is Linux siw (drivers/infiniband/sw/siw/siw.h).
const vendorSIW = 0x626d74

// probed remembers what devices can do: finding out makes and destroys a dozen
// queue pairs.
var probed struct {
	sync.Mutex
	caps map[string]rdma.Caps
}

// findCaps computes the abilities. What a device advertises but does not keep is
// found by trying.
func (d *Device) findCaps() error {
	probed.Lock()
	defer probed.Unlock()
	key := fmt.Sprintf("%s/%d/%v", d.dev, d.port.num, d.cfg.CM)
	if c, known := probed.caps[key]; known {
		d.caps = c
		return nil
	}
	var a C.struct_va_device_attr
	if rc := C.vb_query_device(d.ctx, &a); rc != 0 {
		return &rdma.OpError{Op: "query", Object: d.dev, Err: errno(rc)}
	}
	d.caps = d.advertised(&a)
	if err := d.probe(); err != nil {
		return &rdma.OpError{Op: "probe", Object: d.dev, Err: err}
	}
	if probed.caps == nil {
		probed.caps = map[string]rdma.Caps{}
	}
	probed.caps[key] = d.caps
	return nil
}

func (d *Device) advertised(a *C.struct_va_device_attr) rdma.Caps {
	c := rdma.Caps{
		Label:      label(d.dev),
		Ops:        rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		Features:   rdma.FeatEvents | rdma.FeatSolicited | rdma.FeatFence | rdma.FeatAsyncEvents | rdma.FeatLastByteLast,
		MaxQP:      int(a.max_qp),
		MaxQPWR:    min(limitQPWR, int(a.max_qp_wr)-1), // one place is the beacon's
		MaxCQE:     min(limitCQE, int(a.max_cqe)),
		MaxSGE:     min(rdma.MaxSGE, int(a.max_sge)),
		MaxRDAtom:  min(limitRDAtom, int(a.max_qp_rd_atom), int(a.max_qp_init_rd_atom)),
		MaxPrivate: maxExchangePrivate,
		MaxMsg:     d.port.maxMsg,
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
		}
	} else {
		c.Ops |= rdma.Ops(rdma.OpSendImm, rdma.OpWriteImm)
		c.Features |= rdma.FeatRNRRetry | rdma.FeatPassiveFirst
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

// probe lowers the advertised limits to what one queue pair can have at once, and
// finds the inline size, which no query tells.
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
	if !d.iwarp && d.canDrain(pd, cq.cq) {
		d.caps.Features |= rdma.FeatSQD
	}
	return nil
}

// queueCap is what a queue pair of these depths asks of the device. One place of
// each queue is a beacon's.
func (d *Device) queueCap(send, recv, inline int) C.struct_va_qp_cap {
	return C.struct_va_qp_cap{max_send_wr: C.uint32_t(send + 1), max_recv_wr: C.uint32_t(recv + 1),
		max_send_sge: C.uint32_t(d.caps.MaxSGE), max_recv_sge: C.uint32_t(d.caps.MaxSGE), max_inline_data: C.uint32_t(inline)}
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

// canDrain walks a queue pair that is its own peer to SQD and back.
func (d *Device) canDrain(pd *C.struct_va_pd, cq *C.struct_va_cq) bool {
	c := d.queueCap(1, 1, 0)
	var rc C.int
	raw := C.vb_raw_qp(pd, cq, &c, &rc)
	if raw == nil {
		return false
	}
	defer C.vb_destroy_raw(raw)
	gid, err := d.gid(unspecified)
	if err != nil {
		return false
	}
	self := endpoint{QPN: uint32(raw.qp_num), LID: d.port.lid, GID: gid.GID, MTU: uint32(max(d.port.mtu, 256))}
	for _, step := range []func() error{
		func() error { return toInit(raw, d.port.num, 0) },
		func() error { return d.toRTR(raw, &self, gid.Index, 1) },
		func() error { return d.toRTS(raw, 0, 1, 0) },
		func() error { return toSQD(raw) },
	} {
		if step() != nil {
			return false
		}
	}
	// The device may still be draining an empty queue.
	return patiently(func() error { return fromSQD(raw) }) == nil
}
