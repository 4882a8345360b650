package regcache

import (
	"container/heap"
	"errors"
	"maps"
	"slices"
	"time"
)

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
