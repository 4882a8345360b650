package regcache

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// PoolConfig says what a pool maps, and how much of what was unmapped it may keep.
type PoolConfig struct {
	Access   rdma.Access      // of all its memory
	Piece    int              // bytes that are mapped and registered at once, or more for what is longer; 0: 64 MiB
	Deferred int              // most unmapped bytes that are kept for the next mapping of their size; 0: none
	Arena    rdma.ArenaConfig // what the pieces are made of
}

const defaultPiece = 64 << 20

// Pool maps memory that is registered already, so that Get of it is a look-up. All of it belongs to one scope, whose
// peers may reach every byte until the pool gives it back to the system. Its methods are safe for concurrent use.
//
// An unmapped range keeps its registration, but no new Get succeeds there. Map of the same size takes it again, the
// latest first, when nobody uses a registration of it. A range that is registered otherwise too is not kept. Above
// Deferred bytes the oldest are given up together, until half as many are left.
type Pool struct {
	scope *Scope
	cfg   PoolConfig

	mu     sync.Mutex
	closed bool
	pieces []*piece
	empty  []*piece // given up, and held by another cache or refused by the device
	spare  map[int][]*Region
	queue  []parking // oldest first; entries that were revived stay until they are met
	n      PoolCounters
}

type parking struct {
	r   *Region
	nth uint64
}

// PoolCounters are of the life of a pool.
type PoolCounters struct {
	Maps     uint64 `json:"maps"`
	Unmaps   uint64 `json:"unmaps"`
	Revived  uint64 `json:"revived"` // mapped again as they were
	Flushes  uint64 `json:"flushes"` // batches of deferred ranges that were given up
	Flushed  uint64 `json:"flushed"` // ranges in them
	Deferred uint64 `json:"deferred_bytes"`
	Most     uint64 `json:"most_deferred_bytes"`
	Pieces   int    `json:"pieces"`
	Bytes    uint64 `json:"bytes"` // of the pieces, all registered
}

// NewPool makes an empty pool. Fails with ErrInvalid for negative sizes or wrong rights.
func (s *Scope) NewPool(cfg PoolConfig) (*Pool, error) {
	fail := func(err error) (*Pool, error) { return nil, &rdma.OpError{Op: "make pool", Err: err} }
	if err := cfg.Access.Validate(); err != nil {
		return fail(err)
	}
	if cfg.Piece < 0 || cfg.Deferred < 0 {
		return fail(rdma.ErrInvalid)
	}
	if cfg.Piece == 0 {
		cfg.Piece = defaultPiece
	}
	p := &Pool{scope: s, cfg: cfg, spare: map[int][]*Region{}}
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || s.closed {
		return fail(rdma.ErrClosed)
	}
	c.pools[p] = struct{}{}
	return p, nil
}

func wholePages(n int) int { return (n + int(pageSize) - 1) &^ (int(pageSize) - 1) }

// Map takes n bytes at a page's beginning, with what was last written there. Only Unmap ends the caller's use of them.
func (p *Pool) Map(n int) (rdma.Buffer, error) {
	fail := func(err error) (rdma.Buffer, error) {
		return rdma.Buffer{}, &rdma.OpError{Op: "map from pool", Object: fmt.Sprintf("%d bytes", n), Err: err}
	}
	if n < 1 {
		return fail(rdma.ErrInvalid)
	}
	size := wholePages(n)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return fail(rdma.ErrClosed)
	}
	r := p.revive(size)
	for i := len(p.pieces) - 1; r == nil && i >= 0; i-- {
		r, _ = p.carve(p.pieces[i], size)
	}
	if r == nil {
		p.mu.Unlock()
		pc, err := p.grow(max(size, p.cfg.Piece)) // under no lock
		if err != nil {
			return fail(err)
		}
		p.mu.Lock()
		p.pieces = append(p.pieces, pc)
		p.n.Pieces++
		p.n.Bytes += uint64(pc.arena.Buffer().Len())
		if r, err = p.carve(pc, size); err != nil {
			p.mu.Unlock()
			return fail(err)
		}
	}
	p.n.Maps++
	p.mu.Unlock()
	return r.rest.Slice(0, n)
}

// revive takes a deferred range of the size that nobody uses.
func (p *Pool) revive(size int) *Region {
	list := p.spare[size]
	for i := len(list) - 1; i >= 0; i-- {
		r := list[i]
		s := r.state.Load()
		if s&(refMask|dead) != 0 || r.piece.outside.Load() != 0 || !r.state.CompareAndSwap(s, s&^parked) {
			continue // in use still, registered by others, or gone
		}
		p.spare[size] = append(list[:i], list[i+1:]...)
		p.n.Deferred -= uint64(size)
		p.n.Revived++
		return r
	}
	return nil
}

// carve takes a new range of a piece and enters it. The caller holds the pool's lock.
func (p *Pool) carve(pc *piece, size int) (*Region, error) {
	if pc.broken.Load() {
		return nil, rdma.ErrNoRoom
	}
	b, err := pc.arena.Alloc(size, int(pageSize))
	if err != nil {
		return nil, err
	}
	r := &Region{base: b.Addr(), end: b.Addr() + uint64(size), access: p.cfg.Access, table: p.scope.own,
		lkey: pc.mr.LKey(), rkey: pc.mr.RKey(), piece: pc, place: -1, rest: b}
	c := p.scope.cache
	c.mu.Lock()
	ok := r.table.live.Insert(ranges.Entry[*Region]{Base: r.base, End: r.end, Val: r})
	c.mu.Unlock()
	if !ok {
		return nil, errors.Join(fmt.Errorf("a region of memory that nobody had: %w", rdma.ErrState), b.Free())
	}
	pc.ranges++
	return r, nil
}

// Unmap puts the memory aside or gives it up; nobody is given it while a region of it is in use. ErrInvalid for what
// is no buffer of the pool, ErrClosed for what was unmapped before.
func (p *Pool) Unmap(b rdma.Buffer) error {
	fail := func(err error) error {
		return &rdma.OpError{Op: "unmap", Object: fmt.Sprintf("%d bytes", b.Len()), Err: err}
	}
	e, ok := p.scope.own.live.At(b.Addr())
	if !ok {
		return fail(rdma.ErrClosed)
	}
	r := e.Val
	if r.piece == nil || r.piece.pool != p || r.base != b.Addr() || wholePages(b.Len()) != int(r.Len()) {
		return fail(rdma.ErrInvalid)
	}
	for {
		s := r.state.Load()
		if s&(parked|dead) != 0 {
			return fail(rdma.ErrClosed)
		}
		if r.state.CompareAndSwap(s, s|parked) {
			break
		}
	}
	size := int(r.Len())
	if r.piece.outside.Load() != 0 && r.killIdle() {
		return p.giveUp(r)
	}
	p.mu.Lock()
	p.n.Unmaps++
	p.n.Deferred += uint64(size)
	p.spare[size] = append(p.spare[size], r)
	p.queue = append(p.queue, parking{r, p.n.Unmaps})
	r.ranked = p.n.Unmaps // which of its stays is the present one
	keep := p.cfg.Deferred
	most := p.n.Deferred
	if most <= uint64(keep) {
		p.n.Most = max(p.n.Most, most)
		if len(p.queue) >= 64 && uint64(len(p.queue)) >= 4*(p.n.Unmaps-p.n.Revived-p.n.Flushed) { // most were revived
			p.queue = slices.DeleteFunc(p.queue, func(q parking) bool { return !q.present() })
		}
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	if _, err := p.flush(uint64(keep / 2)); err != nil {
		return fail(err)
	}
	return nil
}

// giveUp ends a range without a stay in the queue.
func (p *Pool) giveUp(r *Region) error {
	p.mu.Lock()
	p.n.Unmaps++
	p.n.Flushed++
	_, err := p.giveBack([]*Region{r})
	return err
}

// giveBack returns ranges to their pieces and ends the empty pieces. The caller holds the pool's lock, which it gives
// up.
func (p *Pool) giveBack(out []*Region) (closed int, err error) {
	err = p.release(out)
	idle := p.emptied()
	p.mu.Unlock()
	for _, pc := range idle {
		n, cerr := pc.end()
		closed += n
		err = errors.Join(err, cerr)
	}
	return closed, err
}

func (q parking) present() bool {
	return q.r.ranked == q.nth && q.r.state.Load()&(parked|dead) == parked
}

// Flush gives up all deferred ranges that nobody uses.
func (p *Pool) Flush() error {
	_, err := p.flush(0)
	return err
}

// flush gives up the oldest idle deferred ranges until keep bytes are left, and counts the registrations it closed.
func (p *Pool) flush(keep uint64) (closed int, err error) {
	p.mu.Lock()
	var out []*Region
	var stay []parking
	front := 0
	for ; front < len(p.queue) && p.n.Deferred > keep; front++ {
		q := p.queue[front]
		switch {
		case !q.present():
		case q.r.killIdle():
			out = append(out, q.r)
			p.n.Deferred -= q.r.Len()
		default:
			stay = append(stay, q) // in use: the next flush finds it
		}
	}
	if len(out) > 0 {
		p.n.Flushes++
		p.n.Flushed += uint64(len(out))
	}
	p.queue = append(stay, p.queue[front:]...)
	p.n.Most = max(p.n.Most, p.n.Deferred)
	if len(out) > 0 {
		for size, list := range p.spare {
			gone := func(r *Region) bool { return r.state.Load()&dead != 0 }
			if list = slices.DeleteFunc(list, gone); len(list) == 0 {
				delete(p.spare, size)
			} else {
				p.spare[size] = list
			}
		}
	}
	return p.giveBack(out)
}

// release gives ranges back to their pieces. The caller holds the pool's lock.
func (p *Pool) release(out []*Region) (err error) {
	c := p.scope.cache
	c.mu.Lock()
	for _, r := range out {
		c.drop(r)
		c.gone += r.gets()
	}
	c.mu.Unlock()
	for _, r := range out {
		r.piece.ranges--
		err = errors.Join(err, r.rest.Free(), release(r.holds)) // other caches are notified, and may hold it
		r.holds = nil
	}
	return err
}

// emptied takes out the pieces of which nothing is mapped or deferred, and those that failed to close before.
func (p *Pool) emptied() (out []*piece) {
	out, p.empty = p.empty, nil
	p.pieces = slices.DeleteFunc(p.pieces, func(pc *piece) bool {
		if pc.ranges > 0 {
			return false
		}
		out = append(out, pc)
		p.n.Pieces--
		p.n.Bytes -= uint64(pc.arena.Buffer().Len())
		return true
	})
	return out
}

// finish ends a range that was killed in use: the pool's memory was unmapped behind its back.
func (p *Pool) finish(r *Region) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.state.Load()&parked != 0 {
		p.n.Deferred -= r.Len()
		p.n.Flushed++
	}
	c := p.scope.cache
	c.mu.Lock()
	c.gone += r.gets()
	holds := r.holds
	r.holds = nil
	c.mu.Unlock()
	r.piece.ranges--
	return errors.Join(r.rest.Free(), release(holds))
}

// Counters are those of now.
func (p *Pool) Counters() PoolCounters {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Close gives everything back; rdma.ErrBusy while something is mapped, in use, or held by another cache.
func (p *Pool) Close() error {
	err := p.Flush()
	c := p.scope.cache
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.pieces) + len(p.empty); err == nil && n > 0 {
		err = fmt.Errorf("%d pieces: %w", n, rdma.ErrBusy)
	}
	if err != nil {
		return &rdma.OpError{Op: "close pool", Err: err}
	}
	p.closed = true
	c.mu.Lock()
	delete(c.pools, p)
	c.mu.Unlock()
	return nil
}
