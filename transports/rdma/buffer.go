package rdma

import (
	"fmt"
	"unsafe"
)

// Buffer is memory outside the Go heap: all or a part of one mapping. It is a value
// that shares the memory; Free ends it for all copies.
type Buffer struct {
	b    []byte
	m    *mapping
	blk  uint32 // of an arena, and gen tells it from later blocks there
	gen  uint32
	part bool // somebody else's to free
}

// Alloc maps size bytes, zeroed and page aligned. The caller owns them until
// Free. Fails with ErrInvalid for a size below 1 and with the system's error.
func Alloc(size int) (Buffer, error) {
	if size < 1 {
		return Buffer{}, &OpError{"allocate", fmt.Sprintf("%d bytes", size), ErrInvalid}
	}
	b, err := mapMemory(size, 0)
	if err != nil {
		return Buffer{}, &OpError{"allocate", fmt.Sprintf("%d bytes", size), err}
	}
	m := &mapping{b: b, whole: b}
	space.claim(m)
	return Buffer{b: b, m: m}, nil
}

// Foreign declares memory that somebody else mapped, readable and writable. The caller promises that no byte of it is
// the Go heap's, which the runtime gives back to the system at any time, that it stays mapped until Free or [Forget],
// and that its owner frees it behind those. Fails with ErrInvalid when empty, and with ErrBusy when a byte of it is a
// live Buffer's already: declare a mapping once and use its parts.
func Foreign(b []byte) (Buffer, error) {
	if len(b) == 0 {
		return Buffer{}, &OpError{"declare", "0 bytes", ErrInvalid}
	}
	b = b[:len(b):len(b)]
	m := &mapping{b: b}
	syncWatchers()
	if err := space.add(m); err != nil {
		return Buffer{}, &OpError{"declare", fmt.Sprintf("%d bytes", len(b)), err}
	}
	return Buffer{b: b, m: m}, nil
}

// Bytes is the memory. It must not be used after Free.
func (b Buffer) Bytes() []byte { return b.b }

// Addr is the address of byte 0, as SGEs and the peer name it; 0 when empty.
func (b Buffer) Addr() uint64 { return addrOf(b.b) }

func addrOf(b []byte) uint64 {
	if len(b) == 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Len is the size in bytes.
func (b Buffer) Len() int { return len(b.b) }

// Offset is where the buffer begins in its mapping, in bytes.
func (b Buffer) Offset() int {
	if b.m == nil {
		return 0
	}
	return int(b.Addr() - addrOf(b.m.b))
}

// PageSize is how many bytes a page of the memory has, as far as whoever mapped it
// asked for that: huge pages of an arena, the system's own size otherwise.
func (b Buffer) PageSize() int {
	if b.m != nil && b.m.arena != nil && b.m.arena.pages > PagesBase {
		return hugeSize
	}
	return pageSize
}

// Mapping is the whole mapping that the buffer is of: the arena's, or what Alloc or
// Foreign made. It is not the caller's to free.
func (b Buffer) Mapping() Buffer {
	if b.m == nil {
		return Buffer{}
	}
	return Buffer{b: b.m.b, m: b.m, part: true}
}

// Slice is n bytes from off on. It lives as long as what it is of, and is not to be
// freed. Fails with ErrInvalid for a part that is empty or not inside.
func (b Buffer) Slice(off, n int) (Buffer, error) {
	if off < 0 || n < 1 || off > len(b.b) || n > len(b.b)-off {
		return Buffer{}, &OpError{"slice", fmt.Sprintf("%d bytes at %d of %d", n, off, len(b.b)), ErrInvalid}
	}
	b.b = b.b[off : off+n : off+n]
	b.part = true
	return b, nil
}

// Foreign reports whether somebody else mapped the memory: it may go away without Free.
func (b Buffer) Foreign() bool { return b.m != nil && b.m.whole == nil }

// Live reports whether the memory is there and, in an arena, still this buffer's.
func (b Buffer) Live() bool {
	if len(b.b) == 0 {
		return false
	}
	if e, ok := space.live.At(b.Addr()); !ok || e.Val != b.m || e.End-b.Addr() < uint64(len(b.b)) {
		return false
	}
	return b.blk == 0 || b.m.arena.holds(b.blk, b.gen)
}

// Free gives the memory back: it unmaps what Alloc mapped, returns a block to its arena, and ends a declaration of
// foreign memory. Every registration of it must have been closed, by the caller or by a function of [Watch]: providers
// touch registered memory at any time. ErrClosed when it was freed before, ErrInvalid for a part of a buffer.
func (b Buffer) Free() error {
	if len(b.b) == 0 {
		return nil
	}
	fail := func(err error) error { return &OpError{"free", fmt.Sprintf("%d bytes", len(b.b)), err} }
	if b.part {
		return fail(fmt.Errorf("a part of a buffer: %w", ErrInvalid))
	}
	if b.blk != 0 {
		if err := b.m.arena.free(b); err != nil {
			return fail(err)
		}
		return nil
	}
	if err := b.m.end(); err != nil {
		return fail(err)
	}
	return nil
}

// BufferAt finds n bytes at addr inside one live Buffer or one [Arena], or nil. Inline data carries no key, so
// providers use this instead of trusting an address. It allocates nothing and takes no lock.
func BufferAt(addr uint64, n int) []byte {
	e, ok := space.live.At(addr)
	if !ok || n < 0 || uint64(n) > e.End-addr {
		return nil
	}
	off := addr - addrOf(e.Val.b)
	return e.Val.b[off : off+uint64(n) : off+uint64(n)]
}

// Find is BufferAt for those who register: the n bytes at addr as part of their
// mapping, for memory that is known by its address only.
func Find(addr uint64, n int) (Buffer, bool) {
	e, ok := space.live.At(addr)
	if !ok || n < 1 || uint64(n) > e.End-addr {
		return Buffer{}, false
	}
	off := addr - addrOf(e.Val.b)
	return Buffer{b: e.Val.b[off : off+uint64(n) : off+uint64(n)], m: e.Val, part: true}, true
}
