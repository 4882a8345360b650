//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type mr struct {
	dev    *Device
	pd     *domain
	base   uint64
	size   uint64
	access rdma.Access
	lkey   uint32
	rkey   uint32

	mu sync.Mutex
	c  *C.struct_va_mr // nil once closed
}

// RegMR registers the buffer. A failure for want of lockable memory says so.
func (d *Device) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	size := uint64(buf.Len())
	fail := func(err error) (rdma.MR, error) {
		return nil, &rdma.OpError{Op: opRegister, Object: fmt.Sprintf("%d bytes", size), Err: err}
	}
	rights := access
	if d.caps.OnDemand {
		rights &^= rdma.OnDemand
	}
	if err := rights.Validate(); err != nil {
		return fail(err)
	}
	switch {
	case access.Has(rdma.RemoteInvalidate): // no ordinary registration can be revoked by the peer (ibv_reg_mr(3))
		return fail(fmt.Errorf("remote invalidation: %w", rdma.ErrNotSupported))
	case size == 0:
		return fail(fmt.Errorf("an empty buffer: %w", rdma.ErrInvalid))
	}
	p, err := d.usePD(pd)
	if err != nil {
		return fail(err)
	}
	var rc C.int
	c := C.vb_reg_mr(p.pd, C.uint64_t(buf.Addr()), C.uint64_t(size), accessFlags(access, d.caps.Ops), &rc)
	if c == nil {
		d.leavePD(p)
		return nil, registerFailed(size, errno(rc))
	}
	d.count(1)
	return &mr{dev: d, pd: p, base: buf.Addr(), size: size, access: access, lkey: uint32(c.lkey), rkey: uint32(c.rkey),
		c: c}, nil
}

// accessFlags leaves out the rights that no operation of the device could use.
func accessFlags(a rdma.Access, ops rdma.OpSet) C.int {
	var f C.int
	for _, bit := range []struct {
		right rdma.Access
		flag  C.int
		for_  rdma.Opcode
	}{
		{rdma.LocalWrite, C.VA_ACCESS_LOCAL_WRITE, rdma.OpSend},
		{rdma.RemoteWrite, C.VA_ACCESS_REMOTE_WRITE, rdma.OpWrite},
		{rdma.RemoteRead, C.VA_ACCESS_REMOTE_READ, rdma.OpRead},
		{rdma.RemoteAtomic, C.VA_ACCESS_REMOTE_ATOMIC, rdma.OpFetchAdd},
	} {
		if a.Has(bit.right) && ops.Has(bit.for_) {
			f |= bit.flag
		}
	}
	if a.Has(rdma.OnDemand) {
		f |= C.VA_ACCESS_ON_DEMAND
	}
	return f
}

func (m *mr) LKey() uint32        { return m.lkey }
func (m *mr) RKey() uint32        { return m.rkey }
func (m *mr) Addr() uint64        { return m.base }
func (m *mr) Len() uint64         { return m.size }
func (m *mr) Access() rdma.Access { return m.access }

func (m *mr) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.c == nil {
		return nil
	}
	if rc := C.vb_dereg_mr(m.c); rc != 0 {
		return failed("deregister memory", fmt.Sprintf("%d bytes", m.size), errno(rc))
	}
	m.c = nil
	m.dev.leavePD(m.pd)
	m.dev.count(-1)
	return nil
}

// The bits of mayFault are those of abi.h: another index is out of range.
var _ = [1]bool{}[C.VA_ODP_SUPPORT^odpSupport|C.VA_ODP_SEND^odpSend|C.VA_ODP_RECV^odpRecv|C.VA_ODP_WRITE^odpWrite|
	C.VA_ODP_READ^odpRead|C.VA_ODP_ATOMIC^odpAtomic|C.VA_ODP_SRQ_RECV^odpSRQRecv]

// takesFaults reports whether the device registers memory on demand: it has to say so
// (ibv_query_device_ex(3)), for every operation that it has here, and to take a page.
func (d *Device) takesFaults(pd *C.struct_va_pd) bool {
	var odp C.struct_va_odp_caps
	if C.vb_query_odp(d.ctx, &odp) != 0 || !mayFault(uint64(odp.general_caps), uint32(odp.rc_odp_caps), d.caps) {
		return false
	}
	b, err := rdma.Alloc(os.Getpagesize())
	if err != nil {
		return false
	}
	var rc C.int
	m := C.vb_reg_mr(pd, C.uint64_t(b.Addr()), C.uint64_t(b.Len()), accessFlags(rdma.LocalWrite|rdma.OnDemand,
		d.caps.Ops), &rc)
	if m == nil {
		_ = b.Free() // nothing was registered
		return false
	}
	if C.vb_dereg_mr(m) != 0 {
		return false // the page stays mapped: the device may have it
	}
	return b.Free() == nil
}
