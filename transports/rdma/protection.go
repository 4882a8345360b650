package rdma

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

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
