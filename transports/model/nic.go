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
