//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"os"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The bits of mayfault.go are those of abi.h: another index is out of range.
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
