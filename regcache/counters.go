package regcache

import "github.com/rdmaperf/rdmaperf/transports/rdma/ranges"

// Counters are of the life of a cache, named as in UCX (ucs/memory/rcache.c) where it has them.
type Counters struct {
	Gets            uint64 `json:"gets"`
	HitsFast        uint64 `json:"hits_fast"`         // found without a lock
	HitsSlow        uint64 `json:"hits_slow"`         // found under it
	Misses          uint64 `json:"misses"`            // registered
	Uncached        uint64 `json:"uncached"`          // of them for one user: unwatched, or not to be joined
	Puts            uint64 `json:"puts"`              //
	RegionsMerged   uint64 `json:"regions_merged"`    // replaced by one that covers them, or by one with more rights
	UnmapEvents     uint64 `json:"unmap_events"`      // memory that left, and pages that had been replaced
	RegionsInvUnmap uint64 `json:"regions_inv_unmap"` // invalidated for that
	Evictions       uint64 `json:"evictions"`         // closed for a bound or for want of room
	Overtaken       uint64 `json:"overtaken"`         // registered in vain: memory went, or others were faster
	Refused         uint64 `json:"refused"`           // the device would not close a region
	Passed          uint64 `json:"passed"`            // by a tier to the device: rights that it does not keep
	MemRegs         uint64 `json:"mem_regs"`          // calls of the device that succeeded, those of pools included
	MemDeregs       uint64 `json:"mem_deregs"`        //

	Regions int    `json:"regions"` // that can be hit, pools' included
	Bytes   uint64 `json:"bytes"`   // registered, pools' pieces included
}

// Counters are those of now.
func (c *Cache) Counters() Counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	n.Gets = c.gone
	var users uint64
	add := func(r *Region) {
		n.Gets += r.gets()
		users += r.users()
	}
	for t := range c.tables {
		n.Regions += t.live.Len()
		t.live.All(func(e ranges.Entry[*Region]) bool { add(e.Val); return true })
	}
	for r := range c.zombies {
		add(r)
	}
	n.Bytes += c.bytes
	n.Puts = n.Gets - users
	if slow := n.HitsSlow + n.Misses; n.Gets > slow { // one that is under way is in neither
		n.HitsFast = n.Gets - slow
	}
	return n
}

// Map has all of them under their names.
func (n Counters) Map() map[string]int64 {
	return map[string]int64{
		"gets": int64(n.Gets), "hits_fast": int64(n.HitsFast), "hits_slow": int64(n.HitsSlow),
		"misses": int64(n.Misses), "uncached": int64(n.Uncached), "puts": int64(n.Puts),
		"regions_merged": int64(n.RegionsMerged), "unmap_events": int64(n.UnmapEvents),
		"regions_inv_unmap": int64(n.RegionsInvUnmap), "evictions": int64(n.Evictions),
		"overtaken": int64(n.Overtaken), "refused": int64(n.Refused), "passed": int64(n.Passed),
		"mem_regs": int64(n.MemRegs), "mem_deregs": int64(n.MemDeregs),
		"regions": int64(n.Regions), "bytes": int64(n.Bytes),
	}
}
