package lite

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Guest is a place of the arena that another process of the machine may map. It is
// registered with the arena, so that such a process needs no registration and no copy.
type Guest struct {
	File *os.File // the memory; a process that has it maps it, and can neither shrink nor grow it
	Mem  []byte   // the place in the arena
	Off  uint64   // likewise
}

// MaxGuests of a node. Arbitrary.
const MaxGuests = 256

// guestsLen is what all places take of the arena.
func (c *Config) guestsLen() int { return c.Guests * c.GuestMem }

// makeGuests lays memory that can be passed on over the end of the arena, before it is
// registered: a device pins the pages that lie there then.
func (n *Node) makeGuests() error {
	size := n.cfg.GuestMem
	for i := range n.cfg.Guests {
		g := Guest{Off: uint64(len(n.mem) - (i+1)*size)}
		g.Mem = n.bytes(g.Off, size)
		fd, err := unix.MemfdCreate(fmt.Sprintf("lite-guest-%d", i), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return os.NewSyscallError("memfd_create", err)
		}
		g.File = os.NewFile(uintptr(fd), "guest")
		n.guests = append(n.guests, g)
		if err = unix.Ftruncate(fd, int64(size)); err == nil {
			// Who shrank it would end this process with SIGBUS (fcntl(2), F_SEAL_SHRINK).
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
		}
		if err != nil {
			return os.NewSyscallError("memfd", err)
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(g.Mem)))
		if _, _, e := unix.Syscall6(unix.SYS_MMAP, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED, uintptr(fd), 0); e != 0 {
			return os.NewSyscallError("mmap", e)
		}
	}
	return nil
}

// Guests are the places for other processes; they live as long as the node.
func (n *Node) Guests() []Guest { return n.guests }

func (n *Node) closeGuests() {
	for _, g := range n.guests {
		_ = g.File.Close() // nothing was written by it
	}
	n.guests = nil
}

// checkGuests holds the sizes against the arena.
func (c *Config) checkGuests() error {
	if c.Guests < 0 || c.Guests > MaxGuests || c.Guests > 0 && (c.GuestMem < 64<<10 || c.GuestMem > 1<<36 || c.GuestMem%os.Getpagesize() != 0) {
		return fmt.Errorf("%d places for processes of %d bytes, want at most %d of whole pages, 64 KiB to 64 GiB: %w", c.Guests, c.GuestMem, MaxGuests, rdma.ErrInvalid)
	}
	return nil
}
