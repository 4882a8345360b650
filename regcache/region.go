package regcache

import (
	"container/heap"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Region is a registration that several users share. Whoever got it may use its keys for any bytes of it until Put.
type Region struct {
	state atomic.Uint64 // see below
	stamp atomic.Uint64 // of the clock of misses, when it was last got
	_     [48]byte      // what users read lies on a line that no other user writes

	base, end  uint64
	access     rdma.Access
	lkey, rkey uint32
	table      *table
	mr         rdma.MR
	pages      []uint64 // what was pinned, where a source compares that
	piece      *piece   // of a pool, whose registration it is; mr is nil then
	over       *piece   // a registration of its own of a pool's memory, which it keeps from new owners

	// Guarded by the cache's lock.
	place  int    // in the heap; -1: not there
	ranked uint64 // stamp by which it lies there
	holds  []*rdma.Leaving
	rest   rdma.Buffer // of a pool: what its arena gave
	failed bool        // the device refused to close it
}

// The state is one word, so that getting and putting are one addition each.
const (
	refOne  = 1
	refMask = 1<<20 - 1
	dead    = 1 << 20 // in no table: closed by whoever sees the last user go
	closed  = 1 << 21 // somebody closes it, or has
	parked  = 1 << 22 // unmapped by its owner, and not yet by the pool
	getOne  = 1 << 23
)

// LKey names the region in work requests.
func (r *Region) LKey() uint32 { return r.lkey }

// RKey names it to the scope's peer.
func (r *Region) RKey() uint32 { return r.rkey }

// Addr is where it begins: at or before what was asked for.
func (r *Region) Addr() uint64 { return r.base }

// Len is its length in bytes.
func (r *Region) Len() uint64 { return r.end - r.base }

// Access are its rights: those that were asked for, or more.
func (r *Region) Access() rdma.Access { return r.access }

func (r *Region) take() bool {
	if r.state.Add(getOne|refOne)&(dead|parked) == 0 {
		return true
	}
	r.untake()
	return false
}

func (r *Region) untake() {
	if n := r.state.Add(^uint64(getOne|refOne) + 1); n&(refMask|dead) == dead {
		r.finish()
	}
}

// Put ends one use, once for each Get, when all that was posted with the keys has completed. The error is that of a
// device that refused to close the region: its memory stays mapped.
func (r *Region) Put() error {
	n := r.state.Add(^uint64(refOne) + 1)
	if n&refMask == refMask {
		panic("regcache: Put without Get")
	}
	if n&refMask != 0 {
		return nil
	}
	if n&dead != 0 {
		return r.finish()
	}
	if c := r.table.cache; c.over.Load() {
		return c.shrink()
	}
	return nil
}

// Revoke is Put, and answers no later Get with the region: the last of its users closes it. When the caller was the
// only one, no peer can use its keys when Revoke returns. ErrInvalid for a region of a pool: the use is not ended.
func (r *Region) Revoke() error {
	if r.piece != nil {
		return &rdma.OpError{Op: "revoke", Object: "a region of a pool", Err: rdma.ErrInvalid}
	}
	c := r.table.cache
	c.mu.Lock()
	if r.state.Load()&dead == 0 {
		r.kill() // the caller uses it, so it is not to be closed yet
		c.drop(r)
	}
	c.mu.Unlock()
	return r.Put()
}

// finish closes a dead region that has no users; one caller does.
func (r *Region) finish() error {
	for {
		s := r.state.Load()
		if s&(refMask|closed) != 0 {
			return nil
		}
		if r.state.CompareAndSwap(s, s|closed) {
			return r.table.cache.close(r)
		}
	}
}

// kill makes the region dead, and reports whether the caller has to close it: nobody uses it.
func (r *Region) kill() (mine bool) {
	for {
		s := r.state.Load()
		if s&dead != 0 {
			return false
		}
		next := s | dead
		if s&refMask == 0 {
			next |= closed
		}
		if r.state.CompareAndSwap(s, next) {
			return next&closed != 0
		}
	}
}

// killIdle makes the region dead if nobody uses it, and the caller has to close it.
func (r *Region) killIdle() bool {
	s := r.state.Load()
	return s&(refMask|dead) == 0 && r.state.CompareAndSwap(s, s|dead|closed)
}

func (r *Region) users() uint64 { return r.state.Load() & refMask }
func (r *Region) gets() uint64  { return r.state.Load() / getOne }

// heapOf orders regions by when they were last got. A hit only stamps its region, without a lock; the order is put
// right when the first of the heap turns out to have been got since.
type heapOf []*Region

func (h heapOf) Len() int           { return len(h) }
func (h heapOf) Less(i, j int) bool { return h[i].ranked < h[j].ranked }
func (h heapOf) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *heapOf) Push(x any) {
	r := x.(*Region)
	r.place = len(*h)
	*h = append(*h, r)
}

func (h *heapOf) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	r.place = -1
	return r
}

func (h *heapOf) push(r *Region) {
	r.ranked = r.stamp.Load()
	heap.Push(h, r)
}

func (h *heapOf) remove(r *Region) { heap.Remove(h, r.place) }

// oldest kills and drops idle regions, least recently used first, until f is false. The caller holds the lock.
func (c *Cache) oldest(f func(*Region) bool) (evicted []*Region) {
	var busy []*Region
	for len(c.lru) > 0 {
		r := c.lru[0]
		if s := r.stamp.Load(); s != r.ranked {
			r.ranked = s
			heap.Fix(&c.lru, 0)
			continue
		}
		if !r.killIdle() { // in use, so the most recently used there is
			c.lru.remove(r)
			r.stamp.Store(c.tick.Load())
			busy = append(busy, r)
			continue
		}
		c.drop(r)
		c.n.Evictions++
		evicted = append(evicted, r)
		if !f(r) {
			break
		}
	}
	for _, r := range busy {
		c.lru.push(r)
	}
	return evicted
}

// bound evicts until the bounds hold or everything is in use. The caller holds the lock.
func (c *Cache) bound() (evicted []*Region) {
	n := len(c.lru)
	many := func() bool {
		return n > c.cfg.MaxRegions || c.cfg.MaxBytes > 0 && c.kept > c.cfg.MaxBytes
	}
	if many() {
		evicted = c.oldest(func(*Region) bool { n--; return many() })
	}
	c.over.Store(many())
	return evicted
}

func (c *Cache) shrink() error {
	c.mu.Lock()
	evicted := c.bound()
	c.mu.Unlock()
	return c.closeAll(evicted)
}

// evict closes n bytes of idle registrations, or else what pools have deferred, and reports whether it closed any.
func (c *Cache) evict(n uint64) (some bool, err error) {
	var sum uint64
	c.mu.Lock()
	evicted := c.oldest(func(r *Region) bool { sum += r.Len(); return sum < n })
	pools := slices.Collect(maps.Keys(c.pools))
	c.mu.Unlock()
	for _, r := range evicted {
		cerr := c.close(r)
		some = some || cerr == nil
		err = errors.Join(err, cerr)
	}
	for _, p := range pools {
		if some {
			break
		}
		n, ferr := p.flush(0)
		some = n > 0
		err = errors.Join(err, ferr)
	}
	return some, err
}

type trimmed struct {
	tick uint64
	at   time.Time
}

// Trim closes the regions that nobody got for Config.MaxAge. One that was got between two calls of Trim counts as
// got at the later.
func (c *Cache) Trim(now time.Time) error {
	if c.cfg.MaxAge == 0 {
		return nil
	}
	c.mu.Lock()
	c.past = append(c.past, trimmed{c.tick.Add(1), now})
	cut := now.Add(-c.cfg.MaxAge)
	for len(c.past) > 1 && !c.past[1].at.After(cut) {
		c.past = c.past[1:]
	}
	limit := uint64(0)
	if !c.past[0].at.After(cut) {
		limit = c.past[0].tick
	}
	evicted := c.idle(func(r *Region) bool { return r.stamp.Load() < limit })
	c.mu.Unlock()
	return c.closeAll(evicted)
}
