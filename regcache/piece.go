package regcache

import (
	"errors"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// piece is an arena that is registered whole.
type piece struct {
	pool   *Pool
	arena  *rdma.Arena
	mr     rdma.MR
	ranges int         // mapped or deferred
	broken atomic.Bool // somebody took pages of it away: it is used up and closed
	// outside counts registrations of its memory that are not the pool's: while there is one, what is unmapped is
	// given up.
	outside atomic.Int32
}

// grow maps and registers a piece. For want of room it gives up what is idle elsewhere.
func (p *Pool) grow(size int) (*piece, error) {
	a, err := rdma.NewArena(size, p.cfg.Arena)
	if err != nil {
		return nil, err
	}
	c := p.scope.cache
	mr, err := c.register(p.scope.own.pd, a.Buffer(), p.cfg.Access)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	c.mu.Lock()
	c.n.MemRegs++
	c.bytes += uint64(a.Buffer().Len())
	pc := &piece{pool: p, arena: a, mr: mr}
	base := a.Buffer().Addr()
	c.pieces.Insert(ranges.Entry[*piece]{Base: base, End: base + uint64(a.Buffer().Len()), Val: pc})
	c.mu.Unlock()
	return pc, nil
}

// end closes a piece's registration, and unmaps it unless another cache holds it.
func (pc *piece) end() (closed int, err error) {
	p := pc.pool
	c := p.scope.cache
	n := uint64(pc.arena.Buffer().Len())
	if pc.mr != nil {
		if err := pc.mr.Close(); err != nil {
			p.mu.Lock()
			p.empty = append(p.empty, pc)
			p.mu.Unlock()
			return 0, err
		}
		pc.mr = nil
		closed = 1
		c.mu.Lock()
		c.n.MemDeregs++
		c.bytes -= n
		c.pieces.Remove(pc.arena.Buffer().Addr())
		c.mu.Unlock()
	}
	if err := pc.arena.Close(); err != nil {
		p.mu.Lock()
		p.empty = append(p.empty, pc)
		p.mu.Unlock()
		if !errors.Is(err, rdma.ErrBusy) {
			return closed, err
		}
	}
	return closed, nil
}

// visit counts an outside registration of the piece with addr, if any. The caller holds the cache's lock, and leaves.
func (c *Cache) visit(addr uint64) *piece {
	e, ok := c.pieces.At(addr)
	if !ok {
		return nil
	}
	e.Val.outside.Add(1)
	return e.Val
}

func (pc *piece) leave() {
	if pc != nil {
		pc.outside.Add(-1)
	}
}

// unmapped reports whether a byte of [base, end) was unmapped by its owner, and is kept.
func (pc *piece) unmapped(base, end uint64) (yes bool) {
	if pc == nil {
		return false
	}
	pc.pool.scope.own.live.Overlapping(base, end, func(e ranges.Entry[*Region]) bool {
		yes = e.Val.piece == pc && e.Val.state.Load()&parked != 0
		return !yes
	})
	return yes
}
