package rdma

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
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

// Permits is for providers that touch memory themselves, where a kernel driver would answer EFAULT (ibv_reg_mr(3)):
// ErrInvalid for memory that somebody else mapped and that may not be read, or not be written though the rights want
// it. Anything else would end the process when a peer uses the registration. What Alloc and arenas map is always fine,
// and what was looked at once costs nothing again.
func (b Buffer) Permits(a Access) error {
	if !b.Foreign() || b.m.open.Load() {
		return nil
	}
	areas, err := os.ReadFile("/proc/self/maps") // proc_pid_maps(5)
	if err != nil {
		return nil // a system that does not say
	}
	if base := addrOf(b.m.b); protection(areas, base, base+uint64(len(b.m.b))) == "rw" {
		b.m.open.Store(true)
		return nil
	}
	switch protection(areas, b.Addr(), b.Addr()+uint64(b.Len())) {
	case "rw":
		return nil
	case "r":
		if !a.Has(LocalWrite) {
			return nil
		}
		return fmt.Errorf("memory at %#x may only be read: %w", b.Addr(), ErrInvalid)
	}
	return fmt.Errorf("memory at %#x may not be read, or is not mapped: %w", b.Addr(), ErrInvalid)
}

// protection is what all of [base, end) allows: "rw", "r" or nothing. Areas come in the order of their addresses.
func protection(areas []byte, base, end uint64) string {
	all := "rw"
	lines := bufio.NewScanner(bytes.NewReader(areas))
	for lines.Scan() && base < end {
		var from, to uint64
		var may string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &may); n < 3 || to <= base {
			continue
		}
		switch {
		case from > base || may[0] != 'r':
			return ""
		case may[1] != 'w':
			all = "r"
		}
		base = to
	}
	if base < end {
		return ""
	}
	return all
}
