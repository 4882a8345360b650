package regcache

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// fakeDevice registers, counts, and fails as told.
type fakeDevice struct {
	mu      sync.Mutex
	open    map[uint32]*fakeMR
	last    uint32
	regs    int
	deregs  int
	most    uint64        // bytes it takes; 0: any
	bytes   uint64        //
	gate    chan struct{} // when set, registrations wait for it
	entered chan struct{} // and say that they do
	refuse  bool          // to close
}

type fakeMR struct {
	d      *fakeDevice
	key    uint32
	buf    rdma.Buffer
	access rdma.Access
	pd     rdma.PD
}

func (d *fakeDevice) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	gate, entered := d.gate, d.entered
	d.mu.Unlock()
	if gate != nil {
		entered <- struct{}{}
		<-gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.most > 0 && d.bytes+uint64(buf.Len()) > d.most {
		return nil, fmt.Errorf("fake: %w", syscall.ENOMEM)
	}
	d.last++
	m := &fakeMR{d, d.last, buf, access, pd}
	if d.open == nil {
		d.open = map[uint32]*fakeMR{}
	}
	d.open[m.key] = m
	d.regs++
	d.bytes += uint64(buf.Len())
	return m, nil
}

func (m *fakeMR) LKey() uint32        { return m.key }
func (m *fakeMR) RKey() uint32        { return m.key }
func (m *fakeMR) Addr() uint64        { return m.buf.Addr() }
func (m *fakeMR) Len() uint64         { return uint64(m.buf.Len()) }
func (m *fakeMR) Access() rdma.Access { return m.access }
func (m *fakeMR) Close() error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.d.refuse {
		return errors.New("fake refusal")
	}
	if m.d.open[m.key] != m {
		panic("a registration is closed twice")
	}
	m.buf.Bytes()[0]++ // it must be mapped still
	delete(m.d.open, m.key)
	m.d.deregs++
	m.d.bytes -= uint64(m.buf.Len())
	return nil
}

// is reports whether a key can be used.
func (d *fakeDevice) is(key uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[key] != nil
}

func (d *fakeDevice) count() (regs, deregs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.regs, d.deregs
}

// rig is a cache over a fake device, with one scope.
type rig struct {
	*fakeDevice
	c *Cache
	s *Scope
	t testing.TB
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	if cfg.Source == SourceAuto {
		cfg.Source = SourceArena
	}
	d := &fakeDevice{}
	c := expect.Get(New(d, cfg))(t)
	s := expect.Get(c.Scope(0))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if len(d.open) > 0 {
			t.Errorf("%d registrations are left", len(d.open))
		}
	})
	return &rig{d, c, s, t}
}

func (r *rig) alloc(n int) rdma.Buffer { return alloc(r.t, n) }

func alloc(t testing.TB, n int) rdma.Buffer {
	t.Helper()
	b := expect.Get(rdma.Alloc(n))(t)
	t.Cleanup(func() { b.Free() })
	return b
}

func part(t testing.TB, b rdma.Buffer, off, n int) rdma.Buffer {
	t.Helper()
	return expect.Get(b.Slice(off, n))(t)
}

func (r *rig) get(b rdma.Buffer, a rdma.Access) *Region { return get(r.t, r.s, b, a) }

func get(t testing.TB, s *Scope, b rdma.Buffer, a rdma.Access) *Region {
	t.Helper()
	g := expect.Get(s.Get(b, a))(t)
	if g.Addr() > b.Addr() || g.Addr()+g.Len() < b.Addr()+uint64(b.Len()) || !g.Access().Has(a) {
		t.Fatalf("region [%#x,+%d) with rights %#x for [%#x,+%d) with %#x", g.Addr(), g.Len(), g.Access(), b.Addr(),
			b.Len(), a)
	}
	return g
}

func (r *rig) put(g *Region) {
	r.t.Helper()
	expect.OK(r.t, g.Put())
}

// use is a get and a put; it returns the key.
func (r *rig) use(b rdma.Buffer, a rdma.Access) uint32 {
	r.t.Helper()
	g := r.get(b, a)
	defer r.put(g)
	return g.RKey()
}

const rw = rdma.LocalWrite | rdma.RemoteWrite
