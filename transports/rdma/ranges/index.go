// Package ranges is an index of disjoint address ranges: who owns the byte at an address. Readers take no lock and
// allocate nothing; writers are one at a time, which is the caller's to see to. Entries lie in order in chunks of at
// most 8, and chunks in branches of at most 32. A change copies one chunk, so that readers see it before or after.
//
// The index holds what it is given until Remove. What a reader found may be removed the next moment: the value must say
// itself whether it still holds.
package ranges

import "sync/atomic"

// Entry is a range [Base, End) with its value.
type Entry[T any] struct {
	Base, End uint64
	Val       T
}

// Index is empty at first. It must not be copied.
type Index[T any] struct {
	top atomic.Pointer[[]ref[branch[T]]]
	n   int
}

// Len is the number of entries; for the writer.
func (x *Index[T]) Len() int { return x.n }

// At is the entry that holds the byte at addr.
func (x *Index[T]) At(addr uint64) (e Entry[T], ok bool) {
	top := x.top.Load()
	if top == nil {
		return e, false
	}
	j := last(*top, addr)
	b := (*top)[j].p.Load()
	i := last(b.s[:b.n], addr)
	c := b.s[i].p.Load()
	k := c.below(addr)
	if k == 0 {
		// It may begin in the chunk in front of this one, as it was found: what is there by
		// now may be another. Only the first of all can be empty.
		if c = (place[T]{*top, j, i, b, c}).before().c; c == nil || c.n == 0 {
			return e, false
		}
		k = c.n
	}
	if c.e[k-1].End <= addr {
		return e, false
	}
	return c.e[k-1], true
}

// Overlapping calls f with the entries that have a byte in [base, end), in order,
// until it returns false. For the writer, who must not change the index in f.
func (x *Index[T]) Overlapping(base, end uint64, f func(Entry[T]) bool) {
	top := x.top.Load()
	if top == nil || base >= end {
		return
	}
	p := at(*top, base)
	if q := p.before(); q.c != nil { // an entry that begins before base may be there
		p = q
	}
	for ; p.c != nil && p.low() < end; p = p.behind() {
		for k := max(p.c.below(base)-1, 0); k < p.c.n; k++ {
			e := &p.c.e[k]
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

// Insert adds a range. It refuses an empty one and one that overlaps another.
func (x *Index[T]) Insert(e Entry[T]) bool {
	if e.Base >= e.End {
		return false
	}
	top := x.top.Load()
	if top == nil {
		b := &branch[T]{n: 1}
		b.s[0].p.Store(&chunk[T]{n: 1, e: [chunkMost]Entry[T]{e}})
		list := make([]ref[branch[T]], 1)
		list[0].p.Store(b)
		x.top.Store(&list)
		x.n++
		return true
	}
	p := at(*top, e.Base)
	k := p.c.below(e.Base)
	if !p.fits(k, e) {
		return false
	}
	x.n++
	if p.c.n < chunkMost {
		p.b.s[p.i].p.Store(p.c.with(k, e))
		return true
	}
	lo, hi := p.c.cut()
	if k <= lo.n {
		lo = lo.with(k, e)
	} else {
		hi = hi.with(k-lo.n, e)
	}
	x.widen(p, lo, hi)
	return true
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
	p := at(*top, base)
	k := p.c.below(base) - 1
	if k < 0 || p.c.e[k].Base != base || !so(&p.c.e[k]) {
		return e, false
	}
	x.n--
	e = p.c.e[k]
	if p.c.n == 1 && (p.i > 0 || p.j > 0) {
		x.narrow(p)
	} else {
		p.b.s[p.i].p.Store(p.c.without(k))
	}
	return e, true
}
