package regcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

// Registrar is what the cache asks of a device. RegMR and MR.Close are called concurrently, under no lock.
type Registrar interface {
	RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error)
}

// Config bounds what a cache keeps. Regions in use may exceed the bounds; no idle one is kept then.
type Config struct {
	MaxRegions int           // most regions; 0: 16384
	MaxBytes   uint64        // most registered bytes; 0: as many as the device takes
	MaxAge     time.Duration // idle regions older than this are closed by Trim; 0: never
	Source     Source        // how memory that goes away without Free is noticed
}

const defaultRegions = 16384

// Cache keeps registrations of one device behind their last use. Its methods are safe for concurrent use.
type Cache struct {
	reg    Registrar
	cfg    Config
	source source
	stop   func()

	over atomic.Bool   // more than the bounds allow was in use when somebody looked
	tick atomic.Uint64 // rises with every miss and Trim

	mu      sync.Mutex
	closed  bool
	tables  map[*table]struct{}
	local   map[rdma.PD]*table // registrations without remote rights: everybody's
	lru     heapOf             // live regions that are no pool's, the least recently used first
	zombies map[*Region]struct{}
	flights map[*flight]struct{}
	pools   map[*Pool]struct{}
	pieces  ranges.Index[*piece] // of all pools
	bytes   uint64               // registered, pools' apart
	kept    uint64               // of them in tables
	past    []trimmed
	n       Counters // but for gets and puts, which regions count
	gone    uint64   // gets of closed regions
}

// table holds the regions of one owner in one protection domain, none of which overlap.
type table struct {
	cache *Cache
	pd    rdma.PD
	live  ranges.Index[*Region] // written under the cache's lock
}

type flight struct {
	table     *table
	base, end uint64
	over      *piece
	stale     bool // memory of it went away meanwhile
	holds     []*rdma.Leaving
}

// New makes a cache over a device, which must outlive it. It fails when the wanted source is not to be had.
func New(reg Registrar, cfg Config) (*Cache, error) {
	if cfg.MaxRegions < 0 || cfg.MaxAge < 0 {
		return nil, &rdma.OpError{Op: "make registration cache", Err: fmt.Errorf("negative bound: %w", rdma.ErrInvalid)}
	}
	if cfg.MaxRegions == 0 {
		cfg.MaxRegions = defaultRegions
	}
	src, err := open(cfg.Source)
	if err != nil {
		return nil, &rdma.OpError{Op: "make registration cache", Object: "with source " + cfg.Source.String(), Err: err}
	}
	c := &Cache{reg: reg, cfg: cfg, source: src,
		tables: map[*table]struct{}{}, local: map[rdma.PD]*table{}, zombies: map[*Region]struct{}{},
		flights: map[*flight]struct{}{}, pools: map[*Pool]struct{}{}}
	c.stop = rdma.Watch(c.leaving)
	return c, nil
}

// Scope makes an owner: a peer, or peers that trust each other. Keys with remote rights serve one scope only.
func (c *Cache) Scope(pd rdma.PD) (*Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &rdma.OpError{Op: "make scope", Err: rdma.ErrClosed}
	}
	l := c.local[pd]
	if l == nil {
		l = &table{cache: c, pd: pd}
		c.local[pd] = l
		c.tables[l] = struct{}{}
	}
	s := &Scope{cache: c, local: l, own: &table{cache: c, pd: pd}}
	c.tables[s.own] = struct{}{}
	return s, nil
}

// Source names where the cache learns of memory that goes away without Free, and the reason for it.
func (c *Cache) Source() string { return c.source.String() }

// drop takes a region out of its table. The caller holds the lock and has killed it.
func (c *Cache) drop(r *Region) {
	r.table.live.Remove(r.base)
	if r.place >= 0 {
		c.lru.remove(r)
	}
	if r.piece == nil {
		c.kept -= r.end - r.base
		c.zombies[r] = struct{}{}
	}
}

// close closes a region that is dead and that nobody uses. The lock is free.
func (c *Cache) close(r *Region) error {
	if r.piece != nil {
		return r.piece.pool.finish(r)
	}
	err := r.mr.Close()
	c.mu.Lock()
	if err != nil { // the device may still write there: what holds the memory stays
		r.failed = true
		c.n.Refused++
		c.mu.Unlock()
		return err
	}
	delete(c.zombies, r)
	c.bytes -= r.end - r.base
	c.n.MemDeregs++
	c.gone += r.gets()
	holds := r.holds
	r.holds = nil
	c.mu.Unlock()
	r.over.leave()
	return release(holds)
}

func (c *Cache) closeAll(rs []*Region) error { return joined(rs, c.close) }

func release(holds []*rdma.Leaving) error { return joined(holds, (*rdma.Leaving).Release) }

// joined does f to all of a list, whatever fails.
func joined[T any](list []T, f func(T) error) (err error) {
	for _, x := range list {
		err = errors.Join(err, f(x))
	}
	return err
}

// idle kills and drops the idle regions that f picks; pools keep their own.
func (c *Cache) idle(f func(*Region) bool) (evicted []*Region) {
	for t := range c.tables {
		t.live.All(func(e ranges.Entry[*Region]) bool {
			if r := e.Val; r.piece == nil && f(r) && r.killIdle() {
				evicted = append(evicted, r)
			}
			return true
		})
	}
	for _, r := range evicted {
		c.drop(r)
	}
	return evicted
}

// leave closes what is kept of a domain that ends; rdma.ErrBusy while a region of it is in use.
func (c *Cache) leave(pd rdma.PD) error {
	c.mu.Lock()
	evicted := c.idle(func(r *Region) bool { return r.table.pd == pd })
	busy := 0
	for t := range c.tables {
		if t.pd == pd {
			busy += t.live.Len()
		}
	}
	for r := range c.zombies {
		if r.table.pd == pd && r.users() > 0 {
			busy++
		}
	}
	if l := c.local[pd]; l != nil && busy == 0 {
		delete(c.local, pd)
		delete(c.tables, l)
	}
	c.mu.Unlock()
	if err := c.closeAll(evicted); err != nil || busy == 0 {
		return err
	}
	return &rdma.OpError{Op: "free", Object: fmt.Sprintf("protection domain of %d regions in use", busy),
		Err: rdma.ErrBusy}
}

// Close closes what is idle; rdma.ErrBusy while a region is in use, a pool is open, or a device refused to close.
func (c *Cache) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	evicted := c.idle(func(*Region) bool { return true })
	for r := range c.zombies { // what the device refused may succeed now
		if r.failed {
			r.failed = false
			evicted = append(evicted, r)
		}
	}
	c.mu.Unlock()
	err := c.closeAll(evicted)
	c.mu.Lock()
	busy := len(c.pools) + len(c.zombies) + len(c.flights)
	for t := range c.tables {
		busy += t.live.Len()
	}
	if err != nil || busy > 0 {
		c.mu.Unlock()
		if err == nil {
			err = fmt.Errorf("%d regions or pools: %w", busy, rdma.ErrBusy)
		}
		return &rdma.OpError{Op: "close registration cache", Err: err}
	}
	c.closed = true
	c.mu.Unlock()
	c.stop()
	return c.source.close()
}

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
	b, err := json.Marshal(n)
	var m map[string]int64
	if err = errors.Join(err, json.Unmarshal(b, &m)); err != nil {
		panic(err) // all are numbers
	}
	return m
}
