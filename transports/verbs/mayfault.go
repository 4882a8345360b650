package verbs

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// Bits of ibv_query_device_ex(3): of general_caps the first, of rc_odp_caps the others.
const (
	odpSupport = 1 << 0
	odpSend    = 1 << 0
	odpRecv    = 1 << 1
	odpWrite   = 1 << 2
	odpRead    = 1 << 3
	odpAtomic  = 1 << 4
	odpSRQRecv = 1 << 5
)

// mayFault reports whether pages may be missing under each operation of a reliable connection
// that the device has: Caps has one word for all of them.
func mayFault(general uint64, rc uint32, caps rdma.Caps) bool {
	need := uint32(0)
	for _, f := range []struct {
		bits uint32
		used bool
	}{
		{odpSend | odpRecv, caps.Ops.Has(rdma.OpSend)},
		{odpWrite, caps.Ops.Has(rdma.OpWrite)},
		{odpRead, caps.Ops.Has(rdma.OpRead)},
		{odpAtomic, caps.Ops.Has(rdma.OpFetchAdd)},
		{odpSRQRecv, caps.Features.Has(rdma.FeatSRQ)},
	} {
		if f.used {
			need |= f.bits
		}
	}
	return general&odpSupport != 0 && rc&need == need
}
