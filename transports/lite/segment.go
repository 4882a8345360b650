package lite

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Segment is a place of the arena, registered with it, that another process of the machine may map.
type Segment struct {
	File *os.File // the memory; a process that has it maps it, and can neither shrink nor grow it
	Mem  []byte   // the place in the arena
	Off  uint64   // its offset in the arena
}

// MaxSegments of a node bounds its files.
const MaxSegments = 256

func (c *Config) segmentsLen() int { return c.Segments * c.SegmentSize }

// makeSegments maps memory for other processes over the end of the arena, before a device pins the pages there.
func (n *Node) makeSegments() error {
	size := n.cfg.SegmentSize
	for i := range n.cfg.Segments {
		g := Segment{Off: uint64(len(n.mem) - (i+1)*size)}
		g.Mem = n.bytes(g.Off, size)
		fd, err := unix.MemfdCreate(fmt.Sprintf("lite-guest-%d", i), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			return os.NewSyscallError("memfd_create", err)
		}
		g.File = os.NewFile(uintptr(fd), "guest")
		n.segments = append(n.segments, g)
		if err = unix.Ftruncate(fd, int64(size)); err == nil {
			// A process that shrank it would end this one with SIGBUS (fcntl(2), F_SEAL_SHRINK).
			_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
		}
		if err != nil {
			return os.NewSyscallError("memfd", err)
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(g.Mem)))
		if _, _, e := unix.Syscall6(unix.SYS_MMAP, at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_FIXED, uintptr(fd), 0); e != 0 {
			return os.NewSyscallError("mmap", e)
		}
	}
	return nil
}

// Segments are the places for other processes; they live as long as the node.
func (n *Node) Segments() []Segment { return n.segments }

func (n *Node) closeSegments() {
	for _, g := range n.segments {
		_ = g.File.Close() // nothing was written by it
	}
	n.segments = nil
}

func (c *Config) checkSegments() error {
	if c.Segments < 0 || c.Segments > MaxSegments || c.Segments > 0 &&
		(c.SegmentSize < 64<<10 || c.SegmentSize > 1<<36 || c.SegmentSize%os.Getpagesize() != 0) {
		return fmt.Errorf("%d places for processes of %d bytes, want at most %d of whole pages, 64 KiB to 64 GiB: %w",
			c.Segments, c.SegmentSize, MaxSegments, rdma.ErrInvalid)
	}
	return nil
}
