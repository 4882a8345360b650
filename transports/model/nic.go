package model

// nic is the state of one NIC. It does no I/O and has no clock: times come in and go out, in ns.
type nic struct {
	cfg     Config
	keys    *lru
	pages   *lru
	qps     *lru
	accept  int64   // when the pipeline takes its next request
	left    int64   // when the last one left it
	engines []int64 // when each of those that fetch misses is free
	port    int64   // when the link is free
}

type needs struct {
	region   uint64 // number of the registration
	first    uint64 // page, counted from the registration's
	pages    uint64
	unmapped bool // no such registration: the request fails, and nothing is looked up
}

func newNIC(cfg Config) *nic {
	return &nic{cfg: cfg, keys: newLRU(cfg.Keys, cfg.Ways), pages: newLRU(cfg.Translations, cfg.Ways),
		qps: newLRU(cfg.QPs, cfg.Ways), engines: make([]int64, cfg.Inflight)}
}

// stage takes a request through the pipeline and says when it leaves. Its misses overlap; nobody overtakes it.
func (n *nic) stage(at int64, qp uint64, list []needs) int64 {
	at = max(at, n.accept)
	n.accept = at + int64(n.cfg.Service)
	done := n.accept
	if !n.qps.touch(qp) {
		done = max(done, n.fetch(at))
	}
	for i := range list {
		b := &list[i]
		if b.unmapped {
			continue
		}
		if !n.keys.touch(b.region) {
			done = max(done, n.fetch(at))
		}
		for p := b.first; p < b.first+b.pages; p++ {
			if !n.pages.touch(b.region<<32 | p) {
				done = max(done, n.fetch(at))
			}
		}
	}
	n.left = max(n.left, done)
	return n.left
}

func (n *nic) fetch(at int64) int64 {
	best := 0
	for i, free := range n.engines {
		if free < n.engines[best] {
			best = i
		}
	}
	n.engines[best] = max(n.engines[best], at) + int64(n.cfg.Miss)
	return n.engines[best]
}

func (n *nic) send(at int64, size uint64) int64 {
	packets := max((size+mtu-1)/mtu, 1)
	ns := float64(size+packets*headers) * 8 / n.cfg.Gbps
	n.port = max(n.port, at) + int64(ns)
	return n.port
}

// lru is a set-associative cache of tags. It allocates nothing after it was made.
type lru struct {
	index map[uint64]int32 // tag → place
	tags  []uint64
	used  []bool
	prev  []int32 // towards the most recent
	next  []int32
	first []int32 // of each set: the most recent
	last  []int32
	ways  int
}

const nowhere = int32(-1)

// newLRU makes a cache of n entries; ways of 0 means one set.
func newLRU(n, ways int) *lru {
	if ways == 0 {
		ways = n
	}
	sets := n / ways
	c := &lru{index: make(map[uint64]int32, n), tags: make([]uint64, n), used: make([]bool, n),
		prev: make([]int32, n), next: make([]int32, n), first: make([]int32, sets), last: make([]int32, sets),
		ways: ways}
	for s := range sets {
		lo := s * ways
		for i := lo; i < lo+ways; i++ {
			c.prev[i], c.next[i] = int32(i-1), int32(i+1)
		}
		c.prev[lo], c.next[lo+ways-1] = nowhere, nowhere
		c.first[s], c.last[s] = int32(lo), int32(lo+ways-1)
	}
	return c
}

// touch reports whether the tag was there, and makes it the most recent of its set.
func (c *lru) touch(tag uint64) bool {
	set := 0
	if len(c.first) > 1 {
		set = int(mix(tag) % uint64(len(c.first)))
	}
	i, hit := c.index[tag]
	if !hit {
		i = c.last[set]
		if c.used[i] {
			delete(c.index, c.tags[i])
		}
		c.tags[i], c.used[i] = tag, true
		c.index[tag] = i
	}
	c.front(set, i)
	return hit
}

func (c *lru) front(set int, i int32) {
	if c.first[set] == i {
		return
	}
	p, n := c.prev[i], c.next[i]
	c.next[p] = n
	if n != nowhere {
		c.prev[n] = p
	} else {
		c.last[set] = p
	}
	old := c.first[set]
	c.prev[i], c.next[i], c.prev[old], c.first[set] = nowhere, old, i, i
}

// mix spreads tags over sets (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
