// Package ranges is an index of disjoint address ranges: who owns the byte at an
// address. Readers take no lock and allocate nothing; writers are one at a time,
// which is the caller's to see to.
//
// Entries lie in order in chunks of at most 16. A change copies one chunk, so that
// readers see it before or after and never between; the list of chunks is copied
// only when one is cut in two or becomes empty. With 100,000 ranges that is less
// than 1 KB copied for most changes, and 18 comparisons for a look-up.
//
// # Ownership
//
// The index holds what it is given until Remove. What a reader found may be removed
// the next moment: the value must say itself whether it still holds.
package ranges

import (
	"sync/atomic"
)

// chunkMost is how many entries a chunk holds. Arbitrary: 64 make a change twice as dear
// in a full index, and growth, which copies the list of chunks, cheaper.
const chunkMost = 16

// Entry is a range [Base, End) with its value.
type Entry[T any] struct {
	Base, End uint64
	Val       T
}

// chunk is never changed once it can be seen.
type chunk[T any] struct {
	n int
	e [chunkMost]Entry[T]
}

// slot is a chunk with the entries whose Base is at least low, and below the low of
// the next slot.
type slot[T any] struct {
	low uint64
	c   atomic.Pointer[chunk[T]]
}

// Index is empty at first. It must not be copied.
type Index[T any] struct {
	top atomic.Pointer[[]slot[T]]
	n   int
}

// Len is the number of entries; for the writer.
func (x *Index[T]) Len() int { return x.n }

// last is how many of the slots begin at or below addr, less one. The first slot
// begins at 0.
func last[T any](s []slot[T], addr uint64) int {
	lo, hi := 0, len(s)
	for hi-lo > 1 {
		if m := int(uint(lo+hi) >> 1); s[m].low <= addr {
			lo = m
		} else {
			hi = m
		}
	}
	return lo
}

// below is how many entries of c have a Base of at most addr.
func (c *chunk[T]) below(addr uint64) int {
	lo, hi := 0, c.n
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); c.e[m].Base <= addr {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// At is the entry that holds the byte at addr.
func (x *Index[T]) At(addr uint64) (e Entry[T], ok bool) {
	top := x.top.Load()
	if top == nil {
		return e, false
	}
	p := find(*top, addr)
	if p == nil || p.End <= addr {
		return e, false
	}
	return *p, true
}

// find is the last entry that begins at or below addr. Only the first slot can be
// empty, so the entry is in the slot of addr or in the one before.
func find[T any](s []slot[T], addr uint64) *Entry[T] {
	for i := last(s, addr); i >= 0; i-- {
		c := s[i].c.Load()
		if k := c.below(addr); k > 0 {
			return &c.e[k-1]
		}
	}
	return nil
}

// Overlapping calls f with the entries that have a byte in [base, end), in order,
// until it returns false. For the writer, who must not change the index in f.
func (x *Index[T]) Overlapping(base, end uint64, f func(Entry[T]) bool) {
	top := x.top.Load()
	if top == nil || base >= end {
		return
	}
	s := *top
	// An entry that begins before base may be in the slot before.
	for i := max(last(s, base)-1, 0); i < len(s) && s[i].low < end; i++ {
		c := s[i].c.Load()
		for k := max(c.below(base)-1, 0); k < c.n; k++ {
			e := &c.e[k]
			if e.Base >= end {
				return
			}
			if e.End > base && !f(*e) {
				return
			}
		}
	}
}

// All calls f with every entry in order until it returns false; as Overlapping.
func (x *Index[T]) All(f func(Entry[T]) bool) { x.Overlapping(0, ^uint64(0), f) }

// Free tells whether no entry has a byte in [base, end); for the writer.
func (x *Index[T]) Free(base, end uint64) bool {
	free := true
	x.Overlapping(base, end, func(Entry[T]) bool { free = false; return false })
	return free
}

// Insert adds a range. It refuses an empty one and one that overlaps another.
func (x *Index[T]) Insert(e Entry[T]) bool {
	if e.Base >= e.End {
		return false
	}
	top := x.top.Load()
	if top == nil {
		s := make([]slot[T], 1)
		s[0].c.Store(&chunk[T]{n: 1, e: [chunkMost]Entry[T]{e}})
		x.top.Store(&s)
		x.n++
		return true
	}
	s := *top
	i := last(s, e.Base)
	old := s[i].c.Load()
	k := old.below(e.Base)
	if !fits(s, i, k, e) {
		return false
	}
	x.n++
	if old.n < chunkMost {
		s[i].c.Store(old.with(k, e))
		return true
	}
	// In two: the new list is complete before anybody sees it.
	const half = chunkMost / 2
	lo, hi := &chunk[T]{n: half}, &chunk[T]{n: chunkMost - half}
	copy(lo.e[:], old.e[:half])
	copy(hi.e[:], old.e[half:])
	if k <= half {
		lo = lo.with(k, e)
	} else {
		hi = hi.with(k-half, e)
	}
	next := make([]slot[T], len(s)+1)
	copySlots(next, s[:i+1])
	copySlots(next[i+2:], s[i+1:])
	next[i].c.Store(lo)
	next[i+1].low = hi.e[0].Base
	next[i+1].c.Store(hi)
	x.top.Store(&next)
	return true
}

func copySlots[T any](dst, src []slot[T]) {
	for i := range src {
		dst[i].low = src[i].low
		dst[i].c.Store(src[i].c.Load())
	}
}

// fits tells whether e overlaps neither of its neighbours, in front of which and behind
// which it would be the entry k of the chunk i.
func fits[T any](s []slot[T], i, k int, e Entry[T]) bool {
	c := s[i].c.Load()
	before, after := c, c
	at := k - 1
	if k == 0 && i > 0 {
		before = s[i-1].c.Load()
		at = before.n - 1 // -1 where that is the first, and empty
	}
	if at >= 0 && before.e[at].End > e.Base {
		return false
	}
	if k == c.n && i+1 < len(s) {
		after, k = s[i+1].c.Load(), 0 // never empty, as it is not the first
	}
	return k >= after.n || after.e[k].Base >= e.End
}

// with is the chunk with e as entry k; there is room.
func (c *chunk[T]) with(k int, e Entry[T]) *chunk[T] {
	n := &chunk[T]{n: c.n + 1}
	copy(n.e[:], c.e[:k])
	n.e[k] = e
	copy(n.e[k+1:], c.e[k:c.n])
	return n
}

// Remove takes out the range that begins at base.
func (x *Index[T]) Remove(base uint64) (e Entry[T], ok bool) {
	return x.RemoveIf(base, func(*Entry[T]) bool { return true })
}

// RemoveIf is Remove of a range that is so; else it is left as it is.
func (x *Index[T]) RemoveIf(base uint64, so func(*Entry[T]) bool) (e Entry[T], ok bool) {
	top := x.top.Load()
	if top == nil {
		return e, false
	}
	s := *top
	i := last(s, base)
	old := s[i].c.Load()
	k := old.below(base) - 1
	if k < 0 || old.e[k].Base != base || !so(&old.e[k]) {
		return e, false
	}
	x.n--
	e = old.e[k]
	if old.n == 1 && i > 0 {
		next := make([]slot[T], len(s)-1)
		copySlots(next, s[:i])
		copySlots(next[i:], s[i+1:])
		x.top.Store(&next)
		return e, true
	}
	n := &chunk[T]{n: old.n - 1}
	copy(n.e[:], old.e[:k])
	copy(n.e[k:], old.e[k+1:old.n])
	s[i].c.Store(n)
	return e, true
}
