package mixed

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// Directions, in the order of tables.
const (
	reads = iota
	writes
	directions
)

// grain is what blocks are aligned to, and what of a write is stamped by itself.
const grain = engine.SlotAlign

// operation is one of them: of a direction, a block and its place in that half of the window.
type operation struct {
	dir   int
	block int // of the direction's sizes
	size  int
	cell  int // of the window half
	at    int // within the cell
}

// order says what operation n of a phase on one queue pair is. Any n can be asked for, and
// both sides get the same: operations come in decks of a hundred, which have the mix
// exactly and are shuffled by the seed, and the sizes of a direction in decks of their own.
type order struct {
	deal  [1 + directions]deck
	of    [directions][]Block
	count [directions]uint64 // of a deck of operations
	cells int
	size  int    // of the largest block
	place uint64 // state of the places
}

// deck is a hundred cards, of which the current one is kept: who goes up or down asks for
// a hundred of one in turn.
type deck struct {
	state uint64
	dealt uint64 // the deck's number plus one; 0: none yet
	fresh [hundred]uint8
	card  [hundred]uint8
	rank  [hundred]uint8 // how many cards of the same kind are before it
}

// newOrder is that of a phase on a queue pair.
func newOrder(o *Options, sh *engine.Shape, gen, lane int) *order {
	r := &order{of: [directions][]Block{o.Reads, o.Writes}, count: [directions]uint64{uint64(o.ReadPercent),
		uint64(hundred - o.ReadPercent)},
		cells: sh.Slots, size: sh.Size}
	for i := range r.deal {
		r.deal[i].state = engine.PatternState(sh.Seed, gen, lane, -1-i)
	}
	r.place = engine.PatternState(sh.Seed, gen, lane, -2-len(r.deal))
	for i := range hundred {
		if i >= o.ReadPercent {
			r.deal[0].fresh[i] = writes
		}
	}
	for d, blocks := range r.of {
		at := 0
		for i, b := range blocks {
			for range b.Percent {
				r.deal[1+d].fresh[at] = uint8(i)
				at++
			}
		}
	}
	return r
}

// at is operation n.
func (r *order) at(n uint64) operation {
	d := &r.deal[0]
	d.turn(n / hundred)
	i := n % hundred
	op := operation{dir: int(d.card[i])}
	k := n/hundred*r.count[op.dir] + uint64(d.rank[i]) // its number in its direction
	sizes := &r.deal[1+op.dir]
	sizes.turn(k / hundred)
	op.block = int(sizes.card[k%hundred])
	op.size = r.of[op.dir][op.block].Size
	place := engine.Word(r.place, int(n))
	op.cell = int(place % uint64(r.cells))
	op.at = int(place>>32%uint64(places(r.size, op.size))) * aligned(op.size)
	return op
}

// turn shuffles deck k (Fisher and Yates), unless it lies there.
func (d *deck) turn(k uint64) {
	if d.dealt == k+1 {
		return
	}
	d.dealt, d.card = k+1, d.fresh
	for i := hundred - 1; i > 0; i-- {
		j := engine.Word(d.state, int(k)*hundred+i) % uint64(i+1)
		d.card[i], d.card[j] = d.card[j], d.card[i]
	}
	var seen [1 << 8]uint8
	for i, c := range d.card {
		d.rank[i] = seen[c]
		seen[c]++
	}
}

// places is how many a block has in a cell.
func places(cell, size int) int { return (cell-size)/aligned(size) + 1 }

func aligned(size int) int { return (size + grain - 1) &^ (grain - 1) }
