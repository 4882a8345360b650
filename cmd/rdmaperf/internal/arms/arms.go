// Package arms are the ways to have memory registered that workloads compare: by the device each time, through a cache,
// and when it is mapped.
//
// An [Arm] owns the mappings that Take gave and Give has not taken back. Close fails while a [Hold] or a mapping is
// out.
package arms

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/regcache/offload"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Names of arms.
const (
	None   = "none"        // every registration is the device's, and ends with its use
	Cache  = "cache"       // registrations are kept behind their use
	Prereg = "prereg"      // memory is registered when it is mapped, and given up when it is unmapped
	Lazy   = "prereg+lazy" // likewise, but unmapped memory is kept for a while
	ODP    = "odp"         // the device takes page faults, and nothing is pinned
)

// Names are all, in the order in which they are measured and shown.
func Names() []string { return []string{None, Cache, Prereg, Lazy, ODP} }

// Hold is one registration in use.
type Hold struct {
	mr     rdma.MR
	region *regcache.Region
}

// LKey names it in work requests.
func (h Hold) LKey() uint32 {
	if h.region != nil {
		return h.region.LKey()
	}
	return h.mr.LKey()
}

// RKey names it to the peer.
func (h Hold) RKey() uint32 {
	if h.region != nil {
		return h.region.RKey()
	}
	return h.mr.RKey()
}

// Put ends the use.
func (h Hold) Put() error {
	if h.region != nil {
		return h.region.Put()
	}
	return h.mr.Close()
}

// Arm is one way to have memory registered.
type Arm interface {
	// Take maps n bytes, Give unmaps them. They belong to one goroutine.
	Take(n int) (rdma.Buffer, error)
	Give(b rdma.Buffer) error
	// Get registers; Hold.Put deregisters.
	Get(b rdma.Buffer) (Hold, error)
	// Kept tells whether registrations outlive their use, so that Get of memory that was used before is a look-up.
	Kept() bool
	// Batch is how many registrations one sample is to be the mean of.
	Batch(size int) int
	// Counters are those of the cache and of the pool, nil without one.
	Counters() (*regcache.Counters, *regcache.PoolCounters)
	Close() error
}

// Settings are what an arm is made of.
type Settings struct {
	Reg      regcache.Registrar
	Access   rdma.Access // of every registration
	Pages    rdma.Pages
	Piece    int // bytes that are mapped and registered at once, where that is so
	Deferred int // bytes that the lazy arm keeps when they are unmapped
	Config   regcache.Config
	ODP      bool // Reg takes rdma.OnDemand
}

// New makes the arm of a name: rdma.ErrInvalid for no such arm, rdma.ErrNotSupported where the registrar cannot do it.
func New(name string, s Settings) (Arm, error) {
	switch name {
	case None:
		return &plain{newMapped(s), s.Reg, s.Access}, nil
	case Cache:
		return newCached(s)
	case Prereg:
		s.Deferred = 0
		return newPooled(s)
	case Lazy:
		return newPooled(s)
	case ODP:
		if !s.ODP {
			return nil, fmt.Errorf("on-demand paging: %w", rdma.ErrNotSupported)
		}
		return &plain{newMapped(s), s.Reg, s.Access | rdma.OnDemand}, nil
	}
	return nil, fmt.Errorf("arm %q: %w", name, rdma.ErrInvalid)
}

// batched makes two readings of the clock a hundredth of what is answered from a table. Arbitrary.
const batched = 64

type mapped struct {
	pages  rdma.Pages
	arenas map[uint64]*rdma.Arena
}

func newMapped(s Settings) mapped { return mapped{s.Pages, map[uint64]*rdma.Arena{}} }

func (m *mapped) Take(n int) (rdma.Buffer, error) {
	a, err := rdma.NewArena(n, rdma.ArenaConfig{Pages: m.pages})
	if err != nil {
		return rdma.Buffer{}, err
	}
	b, err := a.Buffer().Slice(0, n)
	if err != nil {
		return b, errors.Join(err, a.Close())
	}
	m.arenas[b.Addr()] = a
	return b, nil
}

func (m *mapped) Give(b rdma.Buffer) error {
	a := m.arenas[b.Addr()]
	delete(m.arenas, b.Addr())
	return a.Close()
}

type plain struct {
	mapped
	reg    regcache.Registrar
	access rdma.Access
}

func (p *plain) Get(b rdma.Buffer) (Hold, error) {
	mr, err := p.reg.RegMR(0, b, p.access)
	return Hold{mr: mr}, err
}

func (p *plain) Kept() bool { return false }

func (p *plain) Batch(size int) int {
	if size <= 64<<10 { // where the clock would be seen
		return 8
	}
	return 1
}

func (p *plain) Counters() (*regcache.Counters, *regcache.PoolCounters) { return nil, nil }
func (p *plain) Close() error                                           { return nil }

type cached struct {
	mapped
	cache  *regcache.Cache
	scope  *regcache.Scope
	access rdma.Access
}

func newCached(s Settings) (*cached, error) {
	c, err := regcache.New(s.Reg, s.Config)
	if err != nil {
		return nil, err
	}
	scope, err := c.Scope(0)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &cached{newMapped(s), c, scope, s.Access}, nil
}

func (c *cached) Get(b rdma.Buffer) (Hold, error) {
	r, err := c.scope.Get(b, c.access)
	return Hold{region: r}, err
}

func (c *cached) Kept() bool    { return true }
func (c *cached) Batch(int) int { return batched }
func (c *cached) Counters() (*regcache.Counters, *regcache.PoolCounters) {
	n := c.cache.Counters()
	return &n, nil
}
func (c *cached) Close() error { return c.cache.Close() }

type pooled struct {
	cached
	pool *regcache.Pool
}

func newPooled(s Settings) (Arm, error) {
	c, err := newCached(s)
	if err != nil {
		return nil, err
	}
	// A piece is one mapping: both arms register the same, and differ only in when they give it up.
	p, err := c.scope.NewPool(regcache.PoolConfig{Access: s.Access, Piece: s.Piece, Deferred: s.Deferred,
		Arena: rdma.ArenaConfig{Pages: s.Pages}})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &pooled{*c, p}, nil
}

func (p *pooled) Take(n int) (rdma.Buffer, error) { return p.pool.Map(n) }
func (p *pooled) Give(b rdma.Buffer) error        { return p.pool.Unmap(b) }
func (p *pooled) Counters() (*regcache.Counters, *regcache.PoolCounters) {
	c, n := p.cache.Counters(), p.pool.Counters()
	return &c, &n
}
func (p *pooled) Close() error { return errors.Join(p.pool.Close(), p.cache.Close()) }

// Flags are those that workloads of arms share. The first of them to register makes the flags, and all read the same.
type Flags struct {
	set *pflag.FlagSet
}

// Chosen is what the flags say.
type Chosen struct {
	Arms     []string // that were asked for
	ODP      bool     // is among them, which not every device has
	Offloads []string // at least one
	Deferred int      // bytes
}

const defaultDeferred = "64M"

// Register adds the flags unless another workload has.
func (f *Flags) Register(set *pflag.FlagSet) {
	f.set = set
	if set.Lookup("arms") != nil {
		return
	}
	set.StringSlice("arms", Names(),
		"register, allreduce: comma list of none (the device registers each time), cache, prereg (registered when it "+
			"is mapped), prereg+lazy (and unmapped late), odp (on-demand paging, where the device has it)")
	set.StringSlice("offload", nil,
		"register, allreduce: comma list of none, hop, TIME, hop+TIME: a detour of each call of the driver, as of a "+
			"kernel next to Linux (default none,hop; of allreduce none)")
	set.String("deferred", defaultDeferred,
		"register, allreduce: bytes that prereg+lazy keeps when they are unmapped; at least two buffers")
}

// Read checks and returns them. own are the detours when none are given.
func (f *Flags) Read(changed func(flag string) bool, own ...string) (c Chosen, err error) {
	list, _ := f.set.GetStringSlice("arms") // Register made them
	detours, _ := f.set.GetStringSlice("offload")
	text, _ := f.set.GetString("deferred")
	c.Arms = values.Unique(list)
	c.ODP = slices.Contains(c.Arms, ODP)
	for _, a := range c.Arms {
		if !slices.Contains(Names(), a) {
			return c, values.Wrong("arms", "%q: want one of %s", a, strings.Join(Names(), ", "))
		}
	}
	if !changed("offload") {
		detours = own
	}
	if c.Offloads = values.Unique(detours); len(c.Offloads) == 0 {
		c.Offloads = []string{"none", "hop"}
	}
	for _, o := range c.Offloads {
		if _, err := offload.Parse(o); err != nil {
			return c, values.Wrong("offload", "%w", err)
		}
	}
	if c.Deferred, err = values.Bytes(text); err != nil {
		return c, values.Wrong("deferred", "%w", err)
	}
	if c.Deferred < 1 {
		return c, values.Wrong("deferred", "%s: want at least 1 byte", text)
	}
	return c, nil
}
