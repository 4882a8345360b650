// Package extent hands out ranges of one arena by package tlsf, and knows them by their offsets. Ranges start at
// multiples of [Align], and those of a page or more at a page's.
package extent

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma/tlsf"
)

// Align is the alignment of every range and the unit of its size, bytes: a cache line.
const Align = 64

// Page is the alignment of ranges that are as long: devices translate by pages.
const Page = 4096

// Errors of Alloc and Free.
var (
	ErrFull = errors.New("no free range of that size in the arena")
	ErrFree = errors.New("range is not in use")
)

// Space is the free part of an arena. It touches no memory and is not safe for concurrent use.
type Space struct {
	heap *tlsf.Heap        // of units
	used map[uint64]uint32 // offset → block
}

// New is the space from off to off+size, both multiples of Align.
func New(off, size uint64) *Space {
	s := &Space{heap: tlsf.New((off + size) / Align), used: map[uint64]uint32{}}
	s.heap.Alloc(off/Align, 1) // never given back
	return s
}

// Alloc takes n bytes, rounded up to Align.
func (s *Space) Alloc(n uint64) (off uint64, err error) {
	align := uint64(1)
	if n > Page-Align {
		align = Page / Align
	}
	id, _, at, ok := s.heap.Alloc((n-1)/Align+1, align)
	if !ok {
		return 0, fmt.Errorf("%d bytes, %d free: %w", n, s.Left(), ErrFull)
	}
	s.used[at*Align] = id
	return at * Align, nil
}

// Free gives back the range that starts at off.
func (s *Space) Free(off uint64) error {
	id, ok := s.used[off]
	if !ok {
		return fmt.Errorf("offset %d: %w", off, ErrFree)
	}
	delete(s.used, off)
	s.heap.Free(id)
	return nil
}

// Left is the number of free bytes.
func (s *Space) Left() uint64 { return s.heap.Left() * Align }
