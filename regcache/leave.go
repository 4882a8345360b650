package regcache

import (
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// leaving is called before memory goes away. What is registered there and
// idle is closed before it returns. What is in use is closed by its last user, and holds
// the memory until then: nobody else is given it, and no key is left that reaches it.
func (c *Cache) leaving(l *rdma.Leaving) {
	base, end := l.Addr, l.Addr+l.Len
	var evicted []*Region
	c.mu.Lock()
	c.n.UnmapEvents++
	hit := func(r *Region) bool { return r.base < end && base < r.end }
	for t := range c.tables {
		var out []*Region
		t.live.Overlapping(base, end, func(e ranges.Entry[*Region]) bool {
			r := e.Val
			// A block that goes back to its arena keeps its pages: a registration that no
			// peer can use stays right, and is in nobody's way unless a device uses it now.
			stays := l.Cause == rdma.Returned && r.access&remote == 0 && r.users() == 0
			if !stays {
				out = append(out, r)
			}
			return true
		})
		for _, r := range out {
			c.n.RegionsInvUnmap++
			if r.piece != nil {
				r.piece.broken.Store(true)
			}
			mine := r.kill()
			c.drop(r)
			c.keepFor(r, l)
			if mine {
				evicted = append(evicted, r)
			}
		}
	}
	for r := range c.zombies {
		if hit(r) && !has(evicted, r) {
			c.keepFor(r, l)
		}
	}
	for f := range c.flights {
		if f.base < end && base < f.end {
			f.stale = true
			l.Hold()
			f.holds = append(f.holds, l)
		}
	}
	c.mu.Unlock()
	c.closeAll(evicted) // a refusal is counted, and holds the memory
}

// keepFor has the memory wait until the region is closed.
func (c *Cache) keepFor(r *Region, l *rdma.Leaving) {
	l.Hold()
	r.holds = append(r.holds, l)
}

func has(list []*Region, r *Region) bool {
	for _, x := range list {
		if x == r {
			return true
		}
	}
	return false
}
