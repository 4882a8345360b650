package regcache

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// leaving closes idle regions of memory before it goes away; a region in use holds the memory until its last Put.
func (c *Cache) leaving(l *rdma.Leaving) {
	base, end := l.Addr, l.Addr+l.Len
	var evicted []*Region
	c.mu.Lock()
	c.n.UnmapEvents++
	for t := range c.tables {
		var out []*Region
		t.live.Overlapping(base, end, func(e ranges.Entry[*Region]) bool {
			r := e.Val
			// A block that returns to its arena keeps its pages, so a local registration that nobody uses stays.
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
		if r.base < end && base < r.end && !slices.Contains(evicted, r) {
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

func (c *Cache) keepFor(r *Region, l *rdma.Leaving) {
	l.Hold()
	r.holds = append(r.holds, l)
}
