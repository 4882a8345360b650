package lite

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Perm is what a handle may do.
type Perm uint8

// LITE's permissions (lite.h).
const (
	PermRead   Perm = 0x01
	PermWrite  Perm = 0x02
	PermShare  Perm = 0x04 // pass on what the handle itself may do
	PermMaster Perm = 0x08 // free, move, grant
	PermAtomic Perm = 0x10
	PermAll         = PermRead | PermWrite | PermShare | PermMaster | PermAtomic
)

// Has is true when all of want are granted.
func (p Perm) Has(want Perm) bool { return p&want == want }

// Handle names a region at one node, means nothing elsewhere and never travels. The zero value is dead.
type Handle uint64

// piece is a chunk of a region: bytes of one node's arena, ChunkSize long but for the last.
type piece struct {
	Node int    `json:"n"`
	Off  uint64 `json:"o"`
	Len  uint64 `json:"l"`
}

// entry is the region behind a handle; only the two atomics change. The first cache line has all that an operation on
// the first piece needs: of thousands of regions few are cached, and most have one piece.
type entry struct {
	gen      uint32
	dead     atomic.Int32 // why it is dead, a Code, or 0
	inflight atomic.Int64 // operations that may touch the memory
	size     uint64
	first    piece // of pieces, again
	perm     Perm
	_        [7]byte

	region uint64
	pieces []piece
	_      [40]byte // whole lines, so that the first one is no part of two (TestAnEntryIsTwoLines)
}

func newEntry(region, size uint64, perm Perm, pieces []piece) *entry {
	return &entry{region: region, size: size, perm: perm, first: pieces[0], pieces: pieces}
}

type handleTable struct {
	all  []atomic.Pointer[entry]
	mu   sync.Mutex
	free []uint32
	next uint32
	gen  uint32
	by   map[uint64][]*entry // region → its handles, to kill them
	// Regions that were ended while an answer that names them may be on its way.
	ended  map[uint64]bool
	newest uint64
}

func (t *handleTable) init() {
	t.all = make([]atomic.Pointer[entry], MaxHandles)
	t.by, t.ended = map[uint64][]*entry{}, map[uint64]bool{}
}

// endedMost bounds the memory of ended regions, whose numbers only grow: an answer is never older than a deadline.
const endedMost = 1 << 16

func (t *handleTable) add(e *entry) (Handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	switch {
	case t.ended[e.region]:
		return 0, ErrDeadHandle
	case len(t.free) > 0:
		i = t.free[len(t.free)-1]
		t.free = t.free[:len(t.free)-1]
	case t.next < MaxHandles:
		i = t.next
		t.next++
	default:
		return 0, ErrNoSpace
	}
	t.gen++
	if t.gen == 0 {
		t.gen = 1
	}
	e.gen = t.gen
	t.by[e.region] = append(t.by[e.region], e)
	t.all[i].Store(e)
	return Handle(e.gen)<<32 | Handle(i), nil
}

// remove ends one handle. It returns its entry, or nil for a dead one.
func (t *handleTable) remove(h Handle) (e *entry, last bool) {
	i := uint32(h)
	if i >= MaxHandles {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e = t.all[i].Load()
	if e == nil || e.gen != uint32(h>>32) {
		return nil, false
	}
	t.all[i].Store(nil)
	t.free = append(t.free, i)
	was := e.dead.Swap(int32(ErrDeadHandle)) != 0
	list := slices.DeleteFunc(t.by[e.region], func(o *entry) bool { return o == e })
	if len(list) == 0 {
		delete(t.by, e.region)
	} else {
		t.by[e.region] = list
	}
	if was {
		return nil, false
	}
	return e, len(list) == 0
}

// kill ends every handle of a region, which stay in the table as dead until they are unmapped, and returns them.
func (t *handleTable) kill(region uint64, why Code) []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[region], t.newest = true, max(t.newest, region)
	if len(t.ended) > endedMost {
		maps.DeleteFunc(t.ended, func(r uint64, _ bool) bool { return r+endedMost/2 < t.newest })
	}
	list := slices.Clone(t.by[region])
	for _, e := range list {
		e.dead.CompareAndSwap(0, int32(why))
	}
	return list
}

// lost ends every handle of a region that lies at a node, in part or whole.
func (t *handleTable) lost(node int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, list := range t.by {
		for _, e := range list {
			if liesAt(e.pieces, node) {
				e.dead.CompareAndSwap(0, int32(ErrPeerDead))
			}
		}
	}
}

func liesAt(pieces []piece, node int) bool {
	return slices.ContainsFunc(pieces, func(p piece) bool { return p.Node == node })
}

// enter finds the region behind h and holds it until leave. This is the whole cost of the indirection.
func (t *handleTable) enter(h Handle, want Perm, off, n uint64) (*entry, error) {
	i := uint32(h)
	if i >= MaxHandles {
		return nil, ErrDeadHandle
	}
	e := t.all[i].Load()
	if e == nil || e.gen != uint32(h>>32) {
		return nil, ErrDeadHandle
	}
	if !e.perm.Has(want) {
		return nil, ErrPermission
	}
	if off > e.size || n > e.size-off {
		return nil, ErrBounds
	}
	// Held before the check, so that kill either sees the hold or is seen.
	e.inflight.Add(1)
	if why := e.dead.Load(); why != 0 {
		e.inflight.Add(-1)
		return nil, errorOf(why)
	}
	return e, nil
}

// look is enter for who does not touch the region's memory.
func (t *handleTable) look(h Handle, want Perm, off, n uint64) (*entry, error) {
	e, err := t.enter(h, want, off, n)
	if err == nil {
		e.leave()
	}
	return e, err
}

func (t *handleTable) has(region uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.by[region]) > 0
}

func (e *entry) leave() { e.inflight.Add(-1) }

// find is the piece that byte off lies in, and where in it.
func (e *entry) find(off uint64) (p *piece, at uint64) {
	if off < ChunkSize {
		return &e.first, off
	}
	return &e.pieces[off/ChunkSize], off % ChunkSize
}
