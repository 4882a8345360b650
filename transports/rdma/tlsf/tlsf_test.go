package tlsf

import (
	"testing"

	"pgregory.net/rapid"
)

func (h *Heap) sound(t *rapid.T, size uint64) {
	var sum, left uint64
	n := 0
	first := uint32(none)
	for id := range h.blocks {
		if b := &h.blocks[id]; b.state != unused && b.prev == none {
			if first != none {
				t.Fatalf("two first blocks, %d and %d", first, id)
			}
			first = uint32(id)
		}
	}
	prev := uint32(none)
	for id := first; id != none; id = h.blocks[id].next {
		b := &h.blocks[id]
		if b.off != sum || b.prev != prev || b.size == 0 {
			t.Fatalf("block %d: %+v behind %d, want offset %d", id, *b, prev, sum)
		}
		sum += b.size
		switch b.state {
		case free:
			left += b.size
			if prev != none && h.blocks[prev].state == free {
				t.Fatalf("free blocks %d and %d side by side", prev, id)
			}
			f, s := class(b.size)
			found := false
			for l := h.head[f][s]; l != none; l = h.blocks[l].fnext {
				found = found || l == id
			}
			if !found || h.top&(1<<f) == 0 || h.sub[f]&(1<<s) == 0 {
				t.Fatalf("free block %d of %d is not listed", id, b.size)
			}
		case taken:
			n++
		}
		prev = id
	}
	if sum != size || left != h.left || n != h.n {
		t.Fatalf("%d units, %d free, %d taken blocks; want %d, %d, %d", sum, left, n, size, h.left, h.n)
	}
}

func TestBlocksAreDisjointAndJoinAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1, 1<<14).Draw(t, "size")
		h := New(size)
		type got struct {
			id, gen uint32
			off, n  uint64
		}
		var have []got
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 600).Draw(t, "n")
				align := uint64(1) << rapid.IntRange(0, 6).Draw(t, "align")
				id, gen, off, ok := h.Alloc(n, align)
				if !ok {
					return
				}
				if off%align != 0 || off+n > size || !h.Taken(id, gen) {
					t.Fatalf("block [%d,+%d) of %d, aligned to %d", off, n, size, align)
				}
				for _, o := range have {
					if off < o.off+o.n && o.off < off+n {
						t.Fatalf("[%d,+%d) overlaps [%d,+%d)", off, n, o.off, o.n)
					}
				}
				have = append(have, got{id, gen, off, n})
			},
			"free": func(t *rapid.T) {
				if len(have) == 0 {
					return
				}
				i := rapid.IntRange(0, len(have)-1).Draw(t, "which")
				g := have[i]
				if rapid.Bool().Draw(t, "retire first") {
					if gen := h.Retire(g.id); h.Taken(g.id, g.gen) || !h.Taken(g.id, gen) {
						t.Fatal("a retired block has its old name")
					}
				}
				h.Free(g.id)
				if h.Taken(g.id, g.gen) {
					t.Fatal("a freed block is taken")
				}
				have = append(have[:i], have[i+1:]...)
			},
			"": func(t *rapid.T) { h.sound(t, size) },
		})
		for _, g := range have {
			if !h.Taken(g.id, g.gen) {
				t.Fatal("a block lost its name")
			}
			h.Free(g.id)
		}
		// All free again, in one piece.
		if _, _, _, ok := h.Alloc(size, 1); !ok {
			t.Fatalf("the %d free units are not found", size)
		}
	})
}

func TestABlockOfTheWholeIsFound(t *testing.T) {
	for _, size := range []uint64{1, 2, 15, 16, 101, 1 << 10, 1<<24 + 12345} {
		if _, _, off, ok := New(size).Alloc(size, 1); !ok || off != 0 {
			t.Errorf("%d of %d: offset %d, found %v", size, size, off, ok)
		}
	}
	if _, _, _, ok := New(100).Alloc(101, 1); ok {
		t.Error("found more than there is")
	}
	if _, _, _, ok := New(100).Alloc(^uint64(0), 1); ok {
		t.Error("found 2^64-1 units")
	}
	if _, _, _, ok := New(100).Alloc(1, 1<<63); ok {
		t.Error("found a multiple of 2^63")
	}
}
