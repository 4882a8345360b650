package regcache

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// Scope is the owner of registrations; see [Cache.Scope].
type Scope struct {
	cache *Cache
	own   *table // regions with remote rights
	local *table // those without are everybody's of the domain

	closed bool // guarded by the cache's lock
}

const remote = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic | rdma.RemoteInvalidate

// Get is a registration of the buffer with at least the rights, kept or new, until [Region.Put]. A hit takes no lock
// and allocates nothing. Errors are ErrInvalid, ErrClosed for memory that is gone, and the device's.
func (s *Scope) Get(buf rdma.Buffer, access rdma.Access) (*Region, error) {
	c := s.cache
	if !c.source.disturbed() {
		addr, n := buf.Addr(), uint64(buf.Len())
		if r := s.own.find(addr, n, access); r != nil { // what has remote rights serves local use as well
			return r, nil
		}
		if access&remote == 0 {
			if r := s.local.find(addr, n, access); r != nil {
				return r, nil
			}
		}
	}
	t := s.own
	if access&remote == 0 {
		t = s.local
	}
	return s.miss(t, buf, access)
}

// find is a live region with the bytes and rights, with one user more. It takes a lock only where pages are others.
func (t *table) find(addr, n uint64, access rdma.Access) *Region {
	e, ok := t.live.At(addr)
	if !ok || e.End-addr < n || n == 0 || !e.Val.access.Has(access) || !e.Val.take() {
		return nil
	}
	r := e.Val
	if r.pages != nil && !t.cache.source.same(r) {
		t.cache.replaced(r)
		return nil
	}
	if now := t.cache.tick.Load(); r.stamp.Load() != now {
		r.stamp.Store(now)
	}
	return r
}

// replaced throws out a region whose pages are not what they were; the caller uses it.
func (c *Cache) replaced(r *Region) {
	c.mu.Lock()
	c.n.UnmapEvents++
	if r.state.Load()&dead == 0 {
		c.n.RegionsInvUnmap++
		r.kill() // the caller uses it, so it is not to be closed yet
		c.drop(r)
	}
	c.mu.Unlock()
	r.untake()
}

// tries bounds how often a registration is made again because memory or other regions changed meanwhile.
const tries = 16

var pageSize = uint64(os.Getpagesize())

func (s *Scope) miss(t *table, buf rdma.Buffer, access rdma.Access) (*Region, error) {
	fail := func(err error) (*Region, error) {
		return nil, &rdma.OpError{Op: "register", Object: fmt.Sprintf("%d bytes", buf.Len()), Err: err}
	}
	if err := access.Validate(); err != nil {
		return fail(err)
	}
	if buf.Len() == 0 {
		return fail(rdma.ErrInvalid)
	}
	c := s.cache
	c.source.wait()
	for try := 0; ; try++ {
		if try == tries {
			return fail(fmt.Errorf("%d registrations were overtaken by others: %w", tries, rdma.ErrBusy))
		}
		r, again, err := s.attempt(t, buf, access)
		if err != nil {
			return fail(err)
		}
		if !again {
			return r, nil
		}
	}
}

// attempt looks under the lock, registers without it, and enters what it made unless regions changed meanwhile.
func (s *Scope) attempt(t *table, buf rdma.Buffer, access rdma.Access) (r *Region, again bool, err error) {
	c := s.cache
	c.mu.Lock()
	if c.closed || s.closed {
		c.mu.Unlock()
		return nil, false, rdma.ErrClosed
	}
	addr, end := buf.Addr(), buf.Addr()+uint64(buf.Len())
	// Counted before it is looked at: Unmap sees the count, or this sees the end.
	over := c.visit(addr)
	if over.unmapped(addr, end) {
		c.mu.Unlock()
		over.leave()
		return nil, false, rdma.ErrClosed
	}
	for _, look := range []*table{s.own, t} {
		r := look.covering(addr, end, access)
		if r == nil {
			continue
		}
		if r.pages != nil && !c.source.same(r) {
			c.mu.Unlock()
			over.leave()
			c.replaced(r)
			return nil, true, nil
		}
		r.stamp.Store(c.tick.Load())
		c.n.HitsSlow++
		c.mu.Unlock()
		over.leave()
		return r, false, nil
	}
	if !buf.Live() {
		c.mu.Unlock()
		over.leave()
		return nil, false, rdma.ErrClosed
	}
	plan, merge := t.plan(buf, access)
	if !merge || !c.source.keeps(plan.buf) {
		plan.buf, plan.access, plan.alone = buf, access, true
	}
	fl := &flight{table: t, base: plan.buf.Addr(), end: plan.buf.Addr() + uint64(plan.buf.Len()), over: over}
	c.flights[fl] = struct{}{}
	c.tick.Add(1)
	c.mu.Unlock()

	// Watched before it is registered: what goes away from here on is noticed.
	if !plan.alone && !c.source.watch(plan.buf) {
		plan.buf, plan.access, plan.alone = buf, access, true
	}
	mr, err := c.register(t.pd, plan.buf, plan.access)
	if err != nil && !plan.alone && plan.buf.Len() > buf.Len() { // more than was asked may be more than there is
		plan.buf, plan.access, plan.alone = buf, access, true
		mr, err = c.register(t.pd, buf, access)
	}
	var pages []uint64
	if err == nil && !plan.alone {
		pages = c.source.pages(plan.buf)
	}
	return c.land(fl, plan, mr, pages, err)
}

type plan struct {
	buf    rdma.Buffer
	access rdma.Access
	alone  bool // in no table: for one user
}

// plan joins a request with the regions that it overlaps, without remote rights in whole pages of the mapping: a peer
// is given no byte that nobody asked for. false: a neighbour can be joined with nothing.
func (t *table) plan(buf rdma.Buffer, access rdma.Access) (p plan, ok bool) {
	whole := buf.Mapping()
	lo, hi := whole.Addr(), whole.Addr()+uint64(whole.Len())
	base, end := buf.Addr(), buf.Addr()+uint64(buf.Len())
	if access&remote == 0 {
		base, end = max(base&^(pageSize-1), lo), min((end+pageSize-1)&^(pageSize-1), hi)
	}
	ok = true
	for grown := true; grown && ok; {
		grown = false
		t.live.Overlapping(base, end, func(e ranges.Entry[*Region]) bool {
			if e.Val.piece != nil || e.Base < lo || e.End > hi { // a pool's, or of a mapping that is gone
				ok = false
				return false
			}
			if e.Base < base || e.End > end || !access.Has(e.Val.access) {
				base, end, access = min(base, e.Base), max(end, e.End), access|e.Val.access
				grown = true
			}
			return true
		})
	}
	if !ok {
		return plan{}, false
	}
	found, live := rdma.Find(base, int(end-base))
	return plan{buf: found, access: access}, live
}

// covering is a live region with the bytes and rights, with one user more.
func (t *table) covering(addr, end uint64, access rdma.Access) *Region {
	if e, ok := t.live.At(addr); ok && e.End >= end && e.Val.access.Has(access) && e.Val.take() {
		return e.Val
	}
	return nil
}

// land enters a registration, or throws it away.
func (c *Cache) land(fl *flight, p plan, mr rdma.MR, pages []uint64, err error) (*Region, bool, error) {
	t := fl.table
	r := &Region{base: fl.base, end: fl.end, access: p.access, table: t, mr: mr, pages: pages, over: fl.over, place: -1}
	var evicted []*Region
	c.mu.Lock()
	delete(c.flights, fl)
	if err != nil {
		c.mu.Unlock()
		fl.over.leave()
		return nil, false, errors.Join(err, release(fl.holds))
	}
	r.base, r.end = p.buf.Addr(), p.buf.Addr()+uint64(p.buf.Len())
	r.lkey, r.rkey = mr.LKey(), mr.RKey()
	c.n.MemRegs++
	c.bytes += r.end - r.base
	r.stamp.Store(c.tick.Load())
	again := fl.stale
	if !again && !p.alone {
		t.live.Overlapping(r.base, r.end, func(e ranges.Entry[*Region]) bool {
			o := e.Val
			if e.Base < r.base || e.End > r.end || !r.access.Has(o.access) || o.piece != nil ||
				e.Base == r.base && e.End == r.end && o.access == r.access {
				again = true // somebody else was faster, and has more or the same
			}
			return !again
		})
	}
	switch {
	case again:
		r.state.Store(dead | closed)
		r.holds = fl.holds
		c.zombies[r] = struct{}{}
		evicted = append(evicted, r)
		c.n.Overtaken++
	case p.alone: // as if somebody had merged it already: closed by its user
		r.state.Store(dead | getOne | refOne)
		c.zombies[r] = struct{}{}
		c.n.Uncached++
		c.n.Misses++
	default:
		evicted = c.enter(r)
		c.n.Misses++
	}
	evicted = append(evicted, c.bound()...)
	c.mu.Unlock()
	// What the device refuses to close is kept, counted, and told by Close.
	c.closeAll(evicted)
	return r, again, nil
}

// enter puts a region in the place of those that it covers.
func (c *Cache) enter(r *Region) (evicted []*Region) {
	var old []*Region
	r.table.live.Overlapping(r.base, r.end, func(e ranges.Entry[*Region]) bool {
		old = append(old, e.Val)
		return true
	})
	for _, o := range old {
		c.n.RegionsMerged++
		if o.kill() {
			evicted = append(evicted, o)
		}
		c.drop(o)
	}
	r.state.Store(getOne | refOne)
	r.table.live.Insert(ranges.Entry[*Region]{Base: r.base, End: r.end, Val: r})
	c.lru.push(r)
	c.kept += r.end - r.base
	return evicted
}

// register asks the device, and gives up idle registrations where it has no room.
func (c *Cache) register(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	for {
		mr, err := c.reg.RegMR(pd, buf, access)
		if err == nil || !exhausted(err) {
			return mr, err
		}
		if some, cerr := c.evict(uint64(buf.Len())); !some {
			return nil, errors.Join(err, cerr)
		}
	}
}

// exhausted reports whether a device has no lockable memory (getrlimit(2), RLIMIT_MEMLOCK) or table entry left.
func exhausted(err error) bool {
	return errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.ENOSPC)
}

// Close ends the owner: regions with remote rights are closed, at once or by their last user.
func (s *Scope) Close() error {
	c := s.cache
	c.mu.Lock()
	var all, evicted []*Region
	pools := 0
	s.own.live.All(func(e ranges.Entry[*Region]) bool {
		if e.Val.piece != nil {
			pools++
		} else {
			all = append(all, e.Val)
		}
		return true
	})
	for _, r := range all {
		if r.kill() {
			evicted = append(evicted, r)
		}
		c.drop(r)
	}
	for p := range c.pools {
		if p.scope == s {
			pools++
		}
	}
	if pools == 0 {
		s.closed = true
		delete(c.tables, s.own)
	}
	c.mu.Unlock()
	err := c.closeAll(evicted)
	if pools > 0 {
		err = errors.Join(err, fmt.Errorf("a pool is open: %w", rdma.ErrBusy))
	}
	if err != nil {
		return &rdma.OpError{Op: "close scope", Err: err}
	}
	return nil
}
