package ranges

import "sync/atomic"

// 8 to 16 entries a chunk, and 32 to 128 chunks a branch, are alike within what they scatter by.
const (
	chunkMost  = 8
	branchMost = 32
)

// ref leads to what holds the entries whose Base is at least low, and below the low of the
// next one. The first of a branch begins where the branch does, and the first branch at 0.
type ref[X any] struct {
	low uint64
	p   atomic.Pointer[X]
}

// chunk is never changed once it can be seen.
type chunk[T any] struct {
	n int
	e [chunkMost]Entry[T]
}

// branch has its chunks replaced in their places, and all else copied.
type branch[T any] struct {
	n int
	s [branchMost]ref[chunk[T]]
}

// last is how many of the refs begin at or below addr, less one, and at least 0.
func last[X any](s []ref[X], addr uint64) int {
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

func (c *chunk[T]) with(k int, e Entry[T]) *chunk[T] {
	n := &chunk[T]{n: c.n + 1}
	copy(n.e[:], c.e[:k])
	n.e[k] = e
	copy(n.e[k+1:], c.e[k:c.n])
	return n
}

func (c *chunk[T]) without(k int) *chunk[T] {
	n := &chunk[T]{n: c.n - 1}
	copy(n.e[:], c.e[:k])
	copy(n.e[k:], c.e[k+1:c.n])
	return n
}

func (c *chunk[T]) cut() (lo, hi *chunk[T]) {
	const half = chunkMost / 2
	lo, hi = &chunk[T]{n: half}, &chunk[T]{n: chunkMost - half}
	copy(lo.e[:], c.e[:half])
	copy(hi.e[:], c.e[half:])
	return lo, hi
}

// place is a chunk and where it is: in the branch j of top, the chunk i.
type place[T any] struct {
	top  []ref[branch[T]]
	j, i int
	b    *branch[T]
	c    *chunk[T] // nil: in front of the first, or behind the last
}

func at[T any](top []ref[branch[T]], addr uint64) place[T] {
	j := last(top, addr)
	b := top[j].p.Load()
	i := last(b.s[:b.n], addr)
	return place[T]{top, j, i, b, b.s[i].p.Load()}
}

func (p place[T]) low() uint64 { return p.b.s[p.i].low }

func (p place[T]) before() place[T] {
	if p.i--; p.i < 0 {
		if p.j--; p.j < 0 {
			return place[T]{}
		}
		p.b = p.top[p.j].p.Load()
		p.i = p.b.n - 1
	}
	p.c = p.b.s[p.i].p.Load()
	return p
}

func (p place[T]) behind() place[T] {
	if p.i++; p.i == p.b.n {
		if p.j++; p.j == len(p.top) {
			return place[T]{}
		}
		p.b, p.i = p.top[p.j].p.Load(), 0
	}
	p.c = p.b.s[p.i].p.Load()
	return p
}

func (p place[T]) fits(k int, e Entry[T]) bool {
	var front, back *Entry[T]
	if k > 0 {
		front = &p.c.e[k-1]
	} else if q := p.before(); q.c != nil && q.c.n > 0 { // the first of all may be empty
		front = &q.c.e[q.c.n-1]
	}
	if k < p.c.n {
		back = &p.c.e[k]
	} else if q := p.behind(); q.c != nil {
		back = &q.c.e[0]
	}
	return (front == nil || front.End <= e.Base) && (back == nil || back.Base >= e.End)
}

// widen puts two chunks in the place of one. What is new is complete before it is seen.
func (x *Index[T]) widen(p place[T], lo, hi *chunk[T]) {
	if p.b.n < branchMost {
		p.top[p.j].p.Store(p.b.wider(p.i, lo, hi))
		return
	}
	// The branch in two, and the list with one more.
	const half = branchMost / 2
	front, back := &branch[T]{n: half}, &branch[T]{n: branchMost - half}
	copy(front.s[:], p.b.s[:half])
	copy(back.s[:], p.b.s[half:])
	low := back.s[0].low
	if p.i < half {
		front = front.wider(p.i, lo, hi)
	} else {
		back = back.wider(p.i-half, lo, hi)
	}
	list := make([]ref[branch[T]], len(p.top)+1)
	copy(list, p.top[:p.j+1])
	copy(list[p.j+2:], p.top[p.j+1:])
	list[p.j].p.Store(front)
	list[p.j+1].low = low
	list[p.j+1].p.Store(back)
	x.top.Store(&list)
}

// wider is the branch with two chunks in the place of its chunk i; there is room.
func (b *branch[T]) wider(i int, lo, hi *chunk[T]) *branch[T] {
	n := &branch[T]{n: b.n + 1}
	copy(n.s[:], b.s[:i+1])
	copy(n.s[i+2:], b.s[i+1:b.n])
	n.s[i].p.Store(lo)
	n.s[i+1].low = hi.e[0].Base
	n.s[i+1].p.Store(hi)
	return n
}

// narrow takes out an empty chunk, not the first of all; the one in front has its addresses then.
func (x *Index[T]) narrow(p place[T]) {
	if p.b.n == 1 {
		list := make([]ref[branch[T]], len(p.top)-1)
		copy(list, p.top[:p.j])
		copy(list[p.j:], p.top[p.j+1:])
		x.top.Store(&list)
		return
	}
	n := &branch[T]{n: p.b.n - 1}
	copy(n.s[:], p.b.s[:p.i])
	copy(n.s[p.i:], p.b.s[p.i+1:p.b.n])
	n.s[0].low = p.top[p.j].low
	p.top[p.j].p.Store(n)
}
