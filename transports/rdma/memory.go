package rdma

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Access are the rights of a registration (ibv_reg_mr(3)). Local read is always allowed.
type Access uint8

const (
	LocalWrite Access = 1 << iota
	RemoteWrite
	RemoteRead
	RemoteAtomic
	// RemoteInvalidate: the peer may revoke the key with send_inv. RFC 5040
	// §8.1.1 wants ordinary registrations safe from that, so it is opt-in.
	RemoteInvalidate
	accessAll = 1<<iota - 1

	// OnDemand registers without pinning: the device takes a page fault where a page is
	// not there (IBV_ACCESS_ON_DEMAND of ibv_reg_mr(3)). Needs Caps.OnDemand.
	OnDemand Access = 1 << 6
)

// Has reports whether all rights of want are granted.
func (a Access) Has(want Access) bool { return a&want == want }

// Validate enforces ibv_reg_mr(3): remote write and remote atomic need local write. With
// OnDemand it answers ErrNotSupported; who has that takes it off before.
func (a Access) Validate() error {
	if a.Has(OnDemand) {
		return fmt.Errorf("on-demand paging: %w", ErrNotSupported)
	}
	if a&^accessAll != 0 {
		return fmt.Errorf("access %#x: unknown bits: %w", uint8(a), ErrInvalid)
	}
	if a&(RemoteWrite|RemoteAtomic) != 0 && !a.Has(LocalWrite) {
		return fmt.Errorf("remote write or atomic access without local write: %w", ErrInvalid)
	}
	return nil
}

// PD is a protection domain of one device. Keys of one domain are useless on
// QPs of another (IBTA 10.2.3, RFC 5040 §8.1.1). Handle 0 always exists.
type PD uint32

// LoadByte reads a byte that the device may be writing, for watching memory.
// Pair it with Poll on software providers. The address must be inside b.
//
//go:nosplit
func LoadByte(b []byte, i int) byte {
	p := unsafe.Pointer(&b[i])
	w := (*uint32)(unsafe.Pointer(uintptr(p) &^ 3))
	sh := (uintptr(p) & 3) * 8
	return byte(atomic.LoadUint32(w) >> sh)
}
