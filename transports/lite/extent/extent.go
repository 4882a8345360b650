// Package extent hands out ranges of one arena: first fit over a sorted list of
// free ranges, merged when they touch.
//
// Ranges start at multiples of [Align], and those of a page or more at a page's. The cost of a
// call grows with the number of free ranges, not with the size asked for.
package extent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Align is the alignment of every range and the unit of its size, bytes: a cache line.
const Align = 64

// Page is the alignment of ranges that are as long. Devices translate by pages, and the kernel
// copies from and to the border of one a few percent faster.
const Page = 4096

var (
	// ErrFull: no free range is long enough.
	ErrFull = errors.New("no free range of that size in the arena")
	// ErrFree: a range was given back that is not in use.
	ErrFree = errors.New("range is not in use")
)

type free struct{ off, len uint64 }

// Space is the free part of an arena. It touches no memory and is not safe for concurrent use.
type Space struct {
	list []free
	used map[uint64]uint64 // offset → length
	left uint64
}

// New is the space from off to off+size, both multiples of Align.
func New(off, size uint64) *Space {
	return &Space{list: []free{{off, size}}, used: map[uint64]uint64{}, left: size}
}

// Alloc takes n bytes, rounded up to Align.
func (s *Space) Alloc(n uint64) (off uint64, err error) {
	if n == 0 || n > 1<<62 {
		return 0, fmt.Errorf("%d bytes: %w", n, ErrFull)
	}
	n = (n + Align - 1) &^ (Align - 1)
	for i, f := range s.list {
		gap := uint64(0) // in front, which stays free
		if n >= Page {
			gap = -f.off & (Page - 1)
		}
		if f.len < gap || f.len-gap < n {
			continue
		}
		off = f.off + gap
		rest := free{off + n, f.len - gap - n}
		switch {
		case gap > 0 && rest.len > 0:
			s.list[i].len = gap
			s.list = slices.Insert(s.list, i+1, rest)
		case gap > 0:
			s.list[i].len = gap
		case rest.len > 0:
			s.list[i] = rest
		default:
			s.list = slices.Delete(s.list, i, i+1)
		}
		s.used[off], s.left = n, s.left-n
		return off, nil
	}
	return 0, fmt.Errorf("%d bytes, %d free: %w", n, s.left, ErrFull)
}

// Free gives back the range that starts at off.
func (s *Space) Free(off uint64) error {
	n, ok := s.used[off]
	if !ok {
		return fmt.Errorf("offset %d: %w", off, ErrFree)
	}
	delete(s.used, off)
	s.left += n
	i, _ := slices.BinarySearchFunc(s.list, off, func(f free, off uint64) int { return cmp.Compare(f.off, off) })
	s.list = slices.Insert(s.list, i, free{off, n})
	if i+1 < len(s.list) && s.list[i].off+s.list[i].len == s.list[i+1].off {
		s.list[i].len += s.list[i+1].len
		s.list = slices.Delete(s.list, i+1, i+2)
	}
	if i > 0 && s.list[i-1].off+s.list[i-1].len == s.list[i].off {
		s.list[i-1].len += s.list[i].len
		s.list = slices.Delete(s.list, i, i+1)
	}
	return nil
}

// Left is the number of free bytes.
func (s *Space) Left() uint64 { return s.left }
