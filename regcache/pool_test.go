package regcache

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (r *rig) pool(cfg PoolConfig) *Pool {
	r.t.Helper()
	if cfg.Access == 0 {
		cfg.Access = rw
	}
	p := expect.Get(r.s.NewPool(cfg))(r.t)
	r.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			r.t.Errorf("close: %v", err)
		}
	})
	return p
}

func mapped(t testing.TB, p *Pool, n int) rdma.Buffer {
	t.Helper()
	return expect.Get(p.Map(n))(t)
}

func unmapped(t testing.TB, p *Pool, b rdma.Buffer) {
	t.Helper()
	expect.OK(t, p.Unmap(b))
}

func TestMemoryOfAPoolIsRegisteredWhenItIsMapped(t *testing.T) {
	r := newRig(t, Config{})
	p := r.pool(PoolConfig{Piece: 1 << 20})
	a, b := mapped(t, p, 5000), mapped(t, p, 4096)
	if a.Addr()%4096 != 0 || a.Len() != 5000 || a.Mapping().Addr() != b.Mapping().Addr() {
		t.Errorf("%d bytes at %#x, %d at %#x", a.Len(), a.Addr(), b.Len(), b.Addr())
	}
	for range 3 {
		for _, x := range []rdma.Buffer{a, b, part(t, a, 4097, 20)} {
			r.use(x, rw)
			r.use(x, rdma.LocalWrite)
		}
	}
	if regs, _ := r.count(); regs != 1 {
		t.Errorf("%d registrations for one piece", regs)
	}
	counted(t, r.c, counts{"hits_fast": 18, "gets": 18, "misses": 0})
	// Rights that the pool has not are registered for one use.
	g := r.get(a, rw|rdma.RemoteRead)
	if g.Len() != 5000 {
		t.Errorf("%d bytes", g.Len())
	}
	r.put(g)
	if r.is(g.RKey()) {
		t.Error("kept beside the pool's own")
	}
	big := mapped(t, p, 3<<20)
	if n := p.Counters(); n.Pieces != 2 || n.Bytes < 4<<20 {
		t.Errorf("%+v", n)
	}
	for _, x := range []rdma.Buffer{a, b, big} {
		unmapped(t, p, x)
	}
	if n := p.Counters(); n.Pieces != 0 || n.Bytes != 0 || r.bytes != 0 { // nothing is deferred
		t.Errorf("%+v, %d bytes registered", n, r.bytes)
	}
}

func TestUnmappingIsDeferredAndRevived(t *testing.T) {
	r := newRig(t, Config{})
	p := r.pool(PoolConfig{Piece: 1 << 20, Deferred: 1 << 20})
	b := mapped(t, p, 8192)
	key := r.use(b, rw)
	unmapped(t, p, b)
	expect.Is(t, "Get of unmapped memory", expect.Err(r.s.Get(b, rw)), rdma.ErrClosed)
	expect.Is(t, "second Unmap", p.Unmap(b), rdma.ErrClosed)
	other := mapped(t, p, 4096) // another size is other memory
	again := mapped(t, p, 8000)
	if again.Addr() != b.Addr() || other.Addr() == b.Addr() || r.use(again, rw) != key {
		t.Error("the same size is not the same memory with its key")
	}
	if n := p.Counters(); n.Revived != 1 || n.Deferred != 0 || n.Flushes != 0 {
		t.Errorf("%+v", n)
	}
	expect.Is(t, "Unmap of a part", p.Unmap(part(t, again, 0, 4096)), rdma.ErrInvalid)
	expect.Is(t, "Free behind the pool's back", again.Free(), rdma.ErrInvalid)
	unmapped(t, p, again)
	unmapped(t, p, other)
	if err := p.Flush(); err != nil || r.is(key) || r.bytes != 0 {
		t.Errorf("%v, %d bytes registered after a flush", err, r.bytes)
	}
}

func TestARangeInUseIsNotHandedOut(t *testing.T) {
	for _, deferred := range []int{0, 1 << 20} {
		r := newRig(t, Config{})
		p := r.pool(PoolConfig{Piece: 1 << 20, Deferred: deferred})
		b := mapped(t, p, 8192)
		g := r.get(b, rw)
		unmapped(t, p, b)
		var others []rdma.Buffer
		for range 20 {
			x := mapped(t, p, 8192)
			if x.Addr() == b.Addr() {
				t.Fatalf("deferred %d: handed out under a device", deferred)
			}
			others = append(others, x)
		}
		p.Flush()
		if !r.is(g.RKey()) || !present(b.Addr(), 8192) {
			t.Fatalf("deferred %d: flushed under a device", deferred)
		}
		r.put(g)
		if x := mapped(t, p, 8192); x.Addr() != b.Addr() {
			t.Errorf("deferred %d: the range is lost after its last use", deferred)
		} else {
			unmapped(t, p, x)
		}
		for _, x := range others {
			unmapped(t, p, x)
		}
	}
}

func TestDeferredBytesAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	const bound = 1 << 20
	p := r.pool(PoolConfig{Piece: 256 << 10, Deferred: bound})
	var bufs []rdma.Buffer
	for i := range 60 {
		bufs = append(bufs, mapped(t, p, (1+i)*4096))
	}
	for _, b := range bufs {
		unmapped(t, p, b)
		if n := p.Counters(); n.Deferred > bound {
			t.Fatalf("%d bytes deferred", n.Deferred)
		}
	}
	n := p.Counters()
	if n.Most > bound || n.Flushes == 0 || n.Flushes > 20 || n.Flushed < 30 {
		t.Errorf("not in batches: %+v", n)
	}
	// What is longer than the bound is not kept.
	unmapped(t, p, mapped(t, p, bound+1))
	if n := p.Counters(); n.Deferred > bound/2 {
		t.Errorf("%d bytes deferred", n.Deferred)
	}
}

func TestWantOfRoomFlushesPools(t *testing.T) {
	r := newRig(t, Config{})
	p := r.pool(PoolConfig{Piece: 1 << 20, Deferred: 8 << 20})
	r.most = 3 << 20
	var bufs []rdma.Buffer
	for range 3 {
		bufs = append(bufs, mapped(t, p, 1<<20))
	}
	if _, err := p.Map(1 << 20); !exhausted(err) {
		t.Errorf("a fourth piece: %v", err)
	}
	unmapped(t, p, bufs[0])
	r.use(r.alloc(8192), rw) // the device has room for it when the deferred piece is gone
	if n := p.Counters(); n.Deferred != 0 || n.Pieces != 2 || n.Flushes != 1 {
		t.Errorf("%+v", n)
	}
	unmapped(t, p, bufs[1])
	x := mapped(t, p, 2<<20) // as has the pool itself, with that and the idle region
	for _, b := range []rdma.Buffer{x, bufs[2]} {
		unmapped(t, p, b)
	}
}

func TestPoolsRefuseWhatIsWrong(t *testing.T) {
	r := newRig(t, Config{})
	for _, cfg := range []PoolConfig{{Access: rdma.RemoteWrite}, {Piece: -1}, {Deferred: -1}} {
		expect.Is(t, fmt.Sprintf("%+v", cfg), expect.Err(r.s.NewPool(cfg)), rdma.ErrInvalid)
	}
	p, _ := r.s.NewPool(PoolConfig{Access: rw, Piece: 4096})
	expect.Is(t, "0 bytes", expect.Err(p.Map(0)), rdma.ErrInvalid)
	expect.Is(t, "memory that is no pool's", p.Unmap(r.alloc(4096)), rdma.ErrClosed)
	b := mapped(t, p, 1)
	expect.Is(t, "scope with a pool", r.s.Close(), rdma.ErrBusy)
	expect.Is(t, "pool in use", p.Close(), rdma.ErrBusy)
	unmapped(t, p, b)
	expect.OK(t, p.Close())
	expect.Is(t, "closed pool", expect.Err(p.Map(1)), rdma.ErrClosed)
	expect.OK(t, r.s.Close())
}
