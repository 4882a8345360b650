// Package tlsf divides a range of units: two-level segregated fit (Masmano, Ripoll, Crespo and Real, ECRTS 2004). Alloc
// and Free take constant time, and what it knows of the blocks lies beside the range and not in it, so that neither a
// peer that writes there nor an owner that writes past its block can spoil it.
//
// A block is the caller's from Alloc to Free. A Heap is one goroutine's at a time.
//
// Of the blocks that a request might just fit into, 16 are looked at: a fit may be there
// and not be found, unless there is one a sixteenth longer. At most 2^31 blocks.
package tlsf

import "math/bits"

const (
	subBits = 4 // classes between a power of two and the next: 16
	subs    = 1 << subBits
	tops    = 64 - subBits + 1
)

const none = 0

type block struct {
	off, size  uint64
	prev, next uint32 // neighbours in the range
	fprev      uint32 // neighbours in the list of their class, while free
	fnext      uint32
	gen        uint32 // rises when the block is freed
	state      uint8
}

const (
	unused uint8 = iota // the record describes nothing
	free
	taken
)

// Heap divides [0, size).
type Heap struct {
	blocks []block // 0 is none
	spare  []uint32
	top    uint64 // which powers of two have free blocks
	sub    [tops]uint16
	head   [tops][subs]uint32
	left   uint64
	n      int
}

// New is a heap of size units, all free.
func New(size uint64) *Heap {
	h := &Heap{blocks: make([]block, 1), left: size}
	if size > 0 {
		id := h.record()
		h.blocks[id] = block{size: size}
		h.list(id)
	}
	return h
}

// Left is how many units are free, in however many pieces.
func (h *Heap) Left() uint64 { return h.left }

// Len is how many blocks are taken.
func (h *Heap) Len() int { return h.n }

func class(size uint64) (f, s int) {
	if size < subs {
		return 0, int(size)
	}
	b := bits.Len64(size) - 1
	return b - subBits + 1, int(size>>(b-subBits)) - subs
}

// roundUp is the least size whose class holds no smaller block than size.
func roundUp(size uint64) uint64 {
	if size < subs {
		return size
	}
	return size + 1<<(bits.Len64(size)-1-subBits) - 1
}

func (h *Heap) record() uint32 {
	if k := len(h.spare); k > 0 {
		id := h.spare[k-1]
		h.spare = h.spare[:k-1]
		return id
	}
	h.blocks = append(h.blocks, block{})
	return uint32(len(h.blocks) - 1)
}

func (h *Heap) list(id uint32) {
	b := &h.blocks[id]
	f, s := class(b.size)
	b.state, b.fprev, b.fnext = free, none, h.head[f][s]
	if b.fnext != none {
		h.blocks[b.fnext].fprev = id
	}
	h.head[f][s] = id
	h.sub[f] |= 1 << s
	h.top |= 1 << f
}

func (h *Heap) unlist(id uint32) {
	b := &h.blocks[id]
	f, s := class(b.size)
	if b.fnext != none {
		h.blocks[b.fnext].fprev = b.fprev
	}
	if b.fprev != none {
		h.blocks[b.fprev].fnext = b.fnext
		return
	}
	if h.head[f][s] = b.fnext; b.fnext == none {
		if h.sub[f] &^= 1 << s; h.sub[f] == 0 {
			h.top &^= 1 << f
		}
	}
}

func (h *Heap) find(size uint64) uint32 {
	f, s := class(roundUp(size))
	if f >= tops {
		return none
	}
	if m := h.sub[f] & (^uint16(0) << s); m != 0 {
		return h.head[f][bits.TrailingZeros16(m)]
	}
	m := h.top & (^uint64(0) << (f + 1))
	if m == 0 {
		return none
	}
	f = bits.TrailingZeros64(m)
	return h.head[f][bits.TrailingZeros16(h.sub[f])]
}

// Alloc takes size units at a multiple of align, a power of two. id names the block
// to Free; gen tells it from later blocks of that id.
func (h *Heap) Alloc(size, align uint64) (id, gen uint32, off uint64, ok bool) {
	if size == 0 || size > h.left || align > h.left {
		return 0, 0, 0, false
	}
	if id = h.find(size); id == none || !h.fits(id, size, align) {
		if id = h.find(size + align - 1); id == none {
			if id = h.among(size, align); id == none {
				return 0, 0, 0, false
			}
		}
	}
	h.unlist(id)
	off = (h.blocks[id].off + align - 1) &^ (align - 1)
	if front := off - h.blocks[id].off; front > 0 {
		rest := h.cut(id, front)
		h.list(id)
		id = rest
	}
	if h.blocks[id].size > size {
		h.list(h.cut(id, size))
	}
	b := &h.blocks[id]
	b.state = taken
	h.left -= size
	h.n++
	return id, b.gen, off, true
}

// fits reports whether the block has size units from a multiple of align on.
func (h *Heap) fits(id uint32, size, align uint64) bool {
	b := &h.blocks[id]
	front := -b.off & (align - 1)
	return front <= b.size && size <= b.size-front
}

const lookAt = 16

// among looks at the first blocks of the class of the size itself, some of which may be
// long enough: a request for all that there is finds it.
func (h *Heap) among(size, align uint64) uint32 {
	f, s := class(size)
	id := h.head[f][s]
	for i := 0; id != none && i < lookAt; i++ {
		if h.fits(id, size, align) {
			return id
		}
		id = h.blocks[id].fnext
	}
	return none
}

func (h *Heap) cut(id uint32, size uint64) uint32 {
	r := h.record() // may move the blocks
	b := &h.blocks[id]
	h.blocks[r] = block{off: b.off + size, size: b.size - size, prev: id, next: b.next, gen: h.blocks[r].gen}
	if b.next != none {
		h.blocks[b.next].prev = r
	}
	b.size, b.next = size, r
	return r
}

// Taken reports whether the block is taken, and not a later one of its id.
func (h *Heap) Taken(id, gen uint32) bool {
	return uint64(id) < uint64(len(h.blocks)) && h.blocks[id].state == taken && h.blocks[id].gen == gen
}

// Retire ends the block's name and keeps its units: Taken says no from here on, and
// Free wants the new generation that Retire returns.
func (h *Heap) Retire(id uint32) (gen uint32) {
	h.blocks[id].gen++
	return h.blocks[id].gen
}

// Free gives a taken block back and joins it with free neighbours.
func (h *Heap) Free(id uint32) {
	b := &h.blocks[id]
	h.left += b.size
	h.n--
	b.gen++
	if p := b.prev; p != none && h.blocks[p].state == free {
		h.unlist(p)
		h.join(p, id)
		id = p
	}
	if n := h.blocks[id].next; n != none && h.blocks[n].state == free {
		h.unlist(n)
		h.join(id, n)
	}
	h.list(id)
}

func (h *Heap) join(id, after uint32) {
	b, a := &h.blocks[id], &h.blocks[after]
	b.size += a.size
	if b.next = a.next; b.next != none {
		h.blocks[b.next].prev = id
	}
	h.blocks[after] = block{gen: a.gen + 1}
	h.spare = append(h.spare, after)
}
