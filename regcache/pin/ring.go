package pin

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/io_uring.h.
const (
	opReadFixed  = 4
	opWriteFixed = 5

	registerBuffers2      = 15
	registerBuffersUpdate = 16
	rsrcSparse            = 1

	offSQ   = 0
	offSQEs = 0x10000000

	enterGetEvents = 1

	paramsSize = 120
	sqeSize    = 64
	entries    = 4 // one operation at a time is all that is asked
)

// ring is an io_uring of which one operation is under way at a time.
type ring struct {
	fd   int
	sq   []byte // submission and completion queue, one mapping (IORING_FEAT_SINGLE_MMAP)
	sqes []byte

	mu                     sync.Mutex
	sqTail, cqHead, cqTail *uint32
	sqMask, cqMask         uint32
	array, cqes            uint32 // offsets in sq
}

func newRing() (*ring, error) {
	var p [paramsSize]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, entries, uintptr(unsafe.Pointer(&p[0])), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r := &ring{fd: int(fd)}
	// struct io_uring_params: sq_off at 40, cq_off at 80.
	u := func(at int) uint32 { return binary.NativeEndian.Uint32(p[at:]) }
	sqEntries, cqEntries := u(0), u(4)
	const singleMmap = 1
	if u(20)&singleMmap == 0 {
		r.close()
		return nil, fmt.Errorf("io_uring of a kernel before 5.4: %w", unix.ENOSYS)
	}
	size := max(u(40+24)+4*sqEntries, u(80+20)+16*cqEntries)
	ringMap := func(at int64, n uint32) ([]byte, error) {
		return unix.Mmap(r.fd, at, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	}
	var err error
	if r.sq, err = ringMap(offSQ, size); err == nil {
		r.sqes, err = ringMap(offSQEs, sqEntries*sqeSize)
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("map io_uring: %w", err)
	}
	word := func(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.sq[at])) }
	r.sqTail, r.sqMask, r.array = word(u(40+4)), *word(u(40 + 8)), u(40+24)
	r.cqHead, r.cqTail, r.cqMask, r.cqes = word(u(80)), word(u(80+4)), *word(u(80 + 8)), u(80+20)
	return r, nil
}

func (r *ring) close() error {
	unix.Munmap(r.sq) // of nothing it is refused
	unix.Munmap(r.sqes)
	return unix.Close(r.fd)
}

func (r *ring) sparse(n uint32) error {
	// struct io_uring_rsrc_register: nr, flags, resv2, data, tags.
	var a [32]byte
	binary.NativeEndian.PutUint32(a[0:], n)
	binary.NativeEndian.PutUint32(a[4:], rsrcSparse)
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerBuffers2,
		uintptr(unsafe.Pointer(&a[0])), uintptr(len(a)), 0, 0)
	if errno != 0 {
		return fmt.Errorf("io_uring_register of a sparse table: %w", errno)
	}
	return nil
}

// update pins n bytes at addr into a slot, or, with 0 bytes, empties it.
func (r *ring) update(slot uint32, addr, n uint64) error {
	vec := [2]uint64{addr, n} // struct iovec
	// struct io_uring_rsrc_update2: offset, resv, data, tags, nr, resv2.
	a := struct {
		offset, resv uint32
		data         unsafe.Pointer
		tags         uint64
		nr, resv2    uint32
	}{offset: slot, data: unsafe.Pointer(&vec), nr: 1}
	got, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerBuffersUpdate,
		uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0, 0)
	if errno != 0 {
		return errno
	}
	if got != 1 {
		return unix.EIO
	}
	return nil
}

func (r *ring) fixed(op byte, slot uint32, addr uint64, n uint32, fd int) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail := *r.sqTail
	i := tail & r.sqMask
	sqe := r.sqes[i*sqeSize:][:sqeSize]
	clear(sqe)
	sqe[0] = op
	binary.NativeEndian.PutUint32(sqe[4:], uint32(fd))
	binary.NativeEndian.PutUint64(sqe[8:], ^uint64(0)) // at the file's position
	binary.NativeEndian.PutUint64(sqe[16:], addr)
	binary.NativeEndian.PutUint32(sqe[24:], n)
	binary.NativeEndian.PutUint16(sqe[40:], uint16(slot))
	binary.NativeEndian.PutUint32(r.sq[r.array+4*i:], i)
	atomic.StoreUint32(r.sqTail, tail+1)
	for submit := uintptr(1); ; submit = 0 {
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), submit, 1, enterGetEvents, 0, 0)
		if head := *r.cqHead; head != atomic.LoadUint32(r.cqTail) {
			res := int32(binary.NativeEndian.Uint32(r.sq[r.cqes+16*(head&r.cqMask)+8:]))
			atomic.StoreUint32(r.cqHead, head+1)
			if res < 0 {
				return 0, unix.Errno(-res)
			}
			return int(res), nil
		}
		if errno != 0 && errno != unix.EINTR {
			return 0, errno
		}
	}
}
