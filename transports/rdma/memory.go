package rdma

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
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
)

// Has tells whether all rights of want are granted.
func (a Access) Has(want Access) bool { return a&want == want }

// Validate enforces ibv_reg_mr(3): remote write and remote atomic need local write.
func (a Access) Validate() error {
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

// Buffer is memory mapped outside the Go heap. It is a value that shares the
// mapping; Free ends the mapping for all copies.
type Buffer struct{ b []byte }

// Alloc maps size bytes, zeroed and page aligned. The caller owns them until
// Free. Fails with ErrInvalid for a size below 1 and with the system's error.
func Alloc(size int) (Buffer, error) {
	if size < 1 {
		return Buffer{}, &OpError{"allocate", fmt.Sprintf("%d bytes", size), ErrInvalid}
	}
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return Buffer{}, &OpError{"allocate", fmt.Sprintf("%d bytes", size), err}
	}
	regions.add(b)
	return Buffer{b}, nil
}

// Bytes is the whole mapping. It must not be used after Free.
func (b Buffer) Bytes() []byte { return b.b }

// Addr is the address of byte 0, as SGEs and the peer name it; 0 when empty.
func (b Buffer) Addr() uint64 {
	if len(b.b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b.b))))
}

// Len is the size in bytes.
func (b Buffer) Len() int { return len(b.b) }

// Free unmaps the memory. Every registration of it must have been closed:
// providers touch registered memory at any time.
func (b Buffer) Free() error {
	if len(b.b) == 0 {
		return nil
	}
	if !regions.remove(b.b) {
		return &OpError{"free", fmt.Sprintf("%d bytes", len(b.b)), ErrClosed}
	}
	return syscall.Munmap(b.b)
}

// BufferAt finds n bytes at addr inside one live Buffer, or nil. Inline data
// carries no key, so providers use this instead of trusting an address.
// It allocates nothing and takes no lock.
func BufferAt(addr uint64, n int) []byte {
	list := regions.load()
	i := sort.Search(len(list), func(i int) bool { return list[i].end > addr })
	if i == len(list) || addr < list[i].base || n < 0 || uint64(n) > list[i].end-addr {
		return nil
	}
	off := addr - list[i].base
	return list[i].b[off : off+uint64(n) : off+uint64(n)]
}

// regions is the process's set of live Buffers: a sorted list, replaced whole
// on change so that readers need no lock.
var regions regionSet

type region struct {
	base, end uint64
	b         []byte
}

type regionSet struct {
	mu   sync.Mutex
	list atomic.Pointer[[]region]
}

func (s *regionSet) load() []region {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *regionSet) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := Buffer{b}.Addr()
	list := append([]region{}, s.load()...)
	list = append(list, region{base, base + uint64(len(b)), b})
	sort.Slice(list, func(i, j int) bool { return list[i].base < list[j].base })
	s.list.Store(&list)
}

func (s *regionSet) remove(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := Buffer{b}.Addr()
	var list []region
	found := false
	for _, r := range s.load() {
		if r.base == base {
			found = true
			continue
		}
		list = append(list, r)
	}
	s.list.Store(&list)
	return found
}

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
