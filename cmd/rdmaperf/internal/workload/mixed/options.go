package mixed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
)

// hundred is how many operations have the mix exactly: percents are whole ones, as fio's.
const hundred = 100

// Block is a size and how many of a hundred operations have it.
type Block struct {
	Size    int `json:"size_bytes"`
	Percent int `json:"percent"`
}

// Options are what only points of this workload have.
type Options struct {
	ReadPercent int     `json:"read_percent"`
	Reads       []Block `json:"reads"`
	Writes      []Block `json:"writes"`
	Span        int     `json:"span_bytes"` // of what is read, and of what is written
	Flush       bool    `json:"write_flush,omitempty"`
}

// mostBlocks is fio's limit of sizes.
const mostBlocks = 64

func (o *Options) blocksOf() [directions][]Block { return [directions][]Block{o.Reads, o.Writes} }

func (o *Options) check() error {
	if o.ReadPercent < 0 || o.ReadPercent > hundred {
		return fmt.Errorf("%d %% of reads: want 0 to 100", o.ReadPercent)
	}
	for _, blocks := range o.blocksOf() {
		sum := 0
		for _, b := range blocks {
			if b.Size < 1 || b.Size > engine.SlotBudget || b.Percent < 1 {
				return fmt.Errorf("a block of %d bytes, %d %%: want 1 byte to 16M, and 1 to 100", b.Size, b.Percent)
			}
			sum += b.Percent
		}
		if sum != hundred || len(blocks) > mostBlocks {
			return fmt.Errorf("%d block sizes of %d %% together: want 1 to %d of 100", len(blocks), sum, mostBlocks)
		}
	}
	if o.Span < o.largest() || o.Span > engine.SlotBudget {
		return fmt.Errorf("a span of %d bytes for blocks of up to %d: want at least that, and at most 16M", o.Span,
			o.largest())
	}
	return nil
}

func (o *Options) largest() int {
	bySize := func(a, b Block) int { return cmp.Compare(a.Size, b.Size) }
	return max(slices.MaxFunc(o.Reads, bySize).Size, slices.MaxFunc(o.Writes, bySize).Size)
}

// String is "70 % reads of 4K/70:64K/30", or with another split of the writes behind it.
func (o *Options) String() string { return fmt.Sprintf("%d %% reads of %s", o.ReadPercent, o.blocks()) }

func (o *Options) blocks() string {
	reads, writes := splitText(o.Reads), splitText(o.Writes)
	if reads == writes {
		return reads
	}
	return reads + "," + writes
}

func splitText(blocks []Block) string {
	parts := make([]string, len(blocks))
	for i, b := range blocks {
		if parts[i] = reports.FormatSize(int64(b.Size)); len(blocks) > 1 {
			parts[i] += "/" + strconv.Itoa(b.Percent)
		}
	}
	return strings.Join(parts, ":")
}

// parseSplits reads fio's bssplit, the writes' behind a comma. Sizes without a percent share what is left.
func parseSplits(s string) (reads, writes []Block, err error) {
	first, second, two := strings.Cut(s, ",")
	if reads, err = parseSplit(first); err != nil || !two {
		return reads, reads, err
	}
	writes, err = parseSplit(second)
	return reads, writes, err
}

func parseSplit(s string) (blocks []Block, err error) {
	left, open := hundred, 0
	for _, part := range strings.Split(s, ":") {
		size, percent, _ := strings.Cut(strings.TrimSpace(part), "/")
		b := Block{}
		if b.Size, err = values.Bytes(size); err != nil {
			return nil, err
		}
		switch {
		case b.Size == 0:
			return nil, errors.New("blocks start at 1 byte")
		case slices.ContainsFunc(blocks, func(o Block) bool { return o.Size == b.Size }):
			return nil, fmt.Errorf("the size %s is given twice", size)
		case percent == "":
			open++
		default:
			if b.Percent, err = strconv.Atoi(percent); err != nil || b.Percent < 1 || b.Percent > hundred {
				return nil, fmt.Errorf("%q: want a whole percentage from 1 to 100", percent)
			}
			left -= b.Percent
		}
		if blocks = append(blocks, b); len(blocks) > mostBlocks {
			return nil, fmt.Errorf("more than %d sizes", mostBlocks)
		}
	}
	switch {
	case open == 0 && left != 0:
		return nil, fmt.Errorf("the percentages of %s add up to %d and not to 100", s, hundred-left)
	case open > left:
		return nil, fmt.Errorf("%s leaves %d %% for %d sizes", s, left, open)
	}
	for i := range blocks {
		if blocks[i].Percent == 0 { // the last ones get what does not divide
			blocks[i].Percent = left / open
			left -= blocks[i].Percent
			open--
		}
	}
	return blocks, nil
}

func parseMix(s string) (mixes []int, err error) {
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 0 || n > hundred:
			return nil, fmt.Errorf("%q: want whole percents of reads from 0 to 100, such as 70 or 0,50,100", word)
		case slices.Contains(mixes, n):
			return nil, fmt.Errorf("%d is given twice", n)
		}
		mixes = append(mixes, n)
	}
	return mixes, nil
}

// Directions, in the order of tables.
const (
	reads = iota
	writes
	directions
)

// grain is what blocks are aligned to, and what of a write is stamped by itself.
const grain = engine.SlotAlign

type operation struct {
	dir   int
	block int // of the direction's sizes
	size  int
	cell  int // of the window half
	at    int // within the cell
}

// order says what operation n on a queue pair is. Decks of a hundred have the mix exactly, and the seed shuffles them.
// The sizes of a direction are in decks of their own.
type order struct {
	deal  [1 + directions]deck
	of    [directions][]Block
	count [directions]uint64 // of a deck of operations
	cells int
	size  int    // of the largest block
	place uint64 // state of the places
}

// deck is a hundred cards, of which the current one is kept: who goes up or down asks for a hundred of one in turn.
type deck struct {
	state uint64
	dealt uint64 // the deck's number plus one; 0: none yet
	fresh [hundred]uint8
	card  [hundred]uint8
	rank  [hundred]uint8 // how many cards of the same kind are before it
}

func newOrder(o *Options, sh *engine.Shape, gen, lane int) *order {
	r := &order{of: o.blocksOf(), cells: sh.Slots, size: sh.Size,
		count: [directions]uint64{uint64(o.ReadPercent), uint64(hundred - o.ReadPercent)}}
	for i := range r.deal {
		r.deal[i].state = engine.PatternState(sh.Seed, gen, lane, -1-i)
	}
	r.place = engine.PatternState(sh.Seed, gen, lane, -2-len(r.deal))
	for i := o.ReadPercent; i < hundred; i++ {
		r.deal[0].fresh[i] = writes
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

func places(cell, size int) int { return (cell-size)/aligned(size) + 1 }

func aligned(size int) int { return (size + grain - 1) &^ (grain - 1) }
