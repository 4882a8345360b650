package regcache

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestAHitIsTheSameRegionAndRegistersNothing(t *testing.T) {
	r := newRig(t, Config{})
	b := r.alloc(16384)
	g := r.get(part(t, b, 4096, 8192), rw)
	for _, p := range [][2]int{{4096, 8192}, {4096, 1}, {12287, 1}, {5000, 100}} {
		if h := r.get(part(t, b, p[0], p[1]), rw); h != g {
			t.Errorf("[%d,+%d) has another region", p[0], p[1])
		} else {
			r.put(h)
		}
	}
	if h := r.get(part(t, b, 5000, 1), rdma.LocalWrite); h != g { // fewer rights
		t.Error("fewer rights have another region")
	} else {
		r.put(h)
	}
	r.put(g)
	if regs, deregs := r.count(); regs != 1 || deregs != 0 {
		t.Errorf("%d registrations, %d closed", regs, deregs)
	}
	counted(t, r.c, counts{"gets": 6, "hits_fast": 5, "misses": 1, "puts": 6, "regions": 1, "bytes": 8192})
}

func TestARegionWithRemoteRightsIsNoLargerThanAsked(t *testing.T) {
	r := newRig(t, Config{})
	b := r.alloc(16384)
	g := r.get(part(t, b, 5000, 100), rw)
	if g.Addr() != b.Addr()+5000 || g.Len() != 100 {
		t.Errorf("[+%d,+%d)", g.Addr()-b.Addr(), g.Len())
	}
	l := r.get(part(t, b, 9000, 100), 0) // nobody else can use it: whole pages
	if l.Addr() != b.Addr()+8192 || l.Len() != 4096 {
		t.Errorf("local: [+%d,+%d)", l.Addr()-b.Addr(), l.Len())
	}
	r.put(g)
	r.put(l)
}

func TestOverlappingRegionsAreJoined(t *testing.T) {
	r := newRig(t, Config{})
	b := r.alloc(32768)
	first := r.get(part(t, b, 0, 8192), rw)
	second := r.get(part(t, b, 16384, 8192), rdma.RemoteRead)
	both := r.get(part(t, b, 4096, 16384), rdma.RemoteRead)
	if both.Addr() != b.Addr() || both.Len() != 24576 || both.Access() != rw|rdma.RemoteRead {
		t.Errorf("[+%d,+%d) with %#x", both.Addr()-b.Addr(), both.Len(), both.Access())
	}
	// The old ones are used still.
	if !r.is(first.RKey()) || !r.is(second.RKey()) {
		t.Error("a region in use was closed")
	}
	key := first.RKey()
	r.put(first)
	if r.is(key) {
		t.Error("a region that was replaced outlives its last use")
	}
	r.put(second)
	r.put(both)
	if k := r.use(part(t, b, 0, 8192), rw); k != both.RKey() {
		t.Error("the joined region is not found")
	}
	counted(t, r.c, counts{"regions_merged": 2, "regions": 1})
}

func TestKeysAreOneOwners(t *testing.T) {
	r := newRig(t, Config{})
	other := expect.Get(r.c.Scope(0))(t)
	foreignPD, _ := r.c.Scope(7)
	b := r.alloc(8192)
	mine := r.use(b, rw)
	g := get(t, other, b, rw)
	if g.RKey() == mine {
		t.Error("a key with remote rights is two owners'")
	}
	r.put(g)
	c := r.alloc(4096)
	l1, l2, l3 := r.get(c, rdma.LocalWrite), get(t, other, c, rdma.LocalWrite), get(t, foreignPD, c, rdma.LocalWrite)
	if l1 != l2 {
		t.Error("a key that no peer can use is not shared")
	}
	if l1 == l3 {
		t.Error("a key is shared by two domains")
	}
	for _, l := range []*Region{l1, l2, l3} {
		r.put(l)
	}
	// The end of an owner is that of its keys, of those in use by their last use.
	h := get(t, other, b, rw)
	expect.OK(t, other.Close())
	if !r.is(h.RKey()) {
		t.Error("closed in use")
	}
	r.put(h)
	if r.is(h.RKey()) || !r.is(mine) || !r.is(l1.RKey()) {
		t.Error("the end of an owner left its key, or took another's")
	}
	expect.Is(t, "Get of a closed owner", expect.Err(other.Get(r.alloc(4096), rw)), rdma.ErrClosed)
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	r := newRig(t, Config{MaxRegions: 3})
	var b [5]rdma.Buffer
	var key [5]uint32
	for i := range b {
		b[i] = r.alloc(4096)
	}
	for i := range 3 {
		key[i] = r.use(b[i], rw)
	}
	r.use(b[0], rw) // a hit, which takes no lock
	key[3] = r.use(b[3], rw)
	if r.is(key[1]) || !r.is(key[0]) || !r.is(key[2]) {
		t.Fatal("the second was the least recently used")
	}
	r.use(b[2], rw)
	r.use(b[0], rw)
	held := r.get(b[3], rw)
	key[4] = r.use(b[4], rw)
	if r.is(key[3]) == false || r.is(key[4]) == false {
		t.Error("a region in use or the new one went")
	}
	r.put(held)
	counted(t, r.c, counts{"evictions": 2, "regions": 3})
}

func TestBytesAreBounded(t *testing.T) {
	r := newRig(t, Config{MaxBytes: 10 * 4096})
	for range 20 {
		r.use(r.alloc(2*4096), rw)
		if n := r.c.Counters(); n.Bytes > 10*4096 {
			t.Fatalf("%d bytes registered", n.Bytes)
		}
	}
	counted(t, r.c, counts{"regions": 5, "evictions": 15})
	// More than the bound is registered when it is used, and not kept.
	g := r.get(r.alloc(11*4096), rw)
	counted(t, r.c, counts{"regions": 1})
	r.put(g)
	counted(t, r.c, counts{"bytes": 0})
}

func TestIdleRegionsAgeAndThoseInUseDoNot(t *testing.T) {
	r := newRig(t, Config{MaxAge: time.Minute})
	now := time.Unix(1000, 0)
	trim := func(d time.Duration) {
		now = now.Add(d)
		expect.OK(t, r.c.Trim(now))
	}
	a, b, c := r.alloc(4096), r.alloc(4096), r.alloc(4096)
	ka, kb := r.use(a, rw), r.use(b, rw)
	held := r.get(c, rw)
	trim(0)
	for range 5 {
		r.use(b, rw)
		trim(20 * time.Second)
	}
	if r.is(ka) || !r.is(kb) || !r.is(held.RKey()) {
		t.Errorf("idle for 100 s: %v, got every 20 s: %v, in use: %v", r.is(ka), r.is(kb), r.is(held.RKey()))
	}
	r.put(held)
	trim(59 * time.Second) // the hits before the last trim count as of it
	if !r.is(kb) {
		t.Error("closed before its time")
	}
	trim(62 * time.Second)
	if r.is(kb) {
		t.Error("idle for two minutes and there")
	}
}

func TestADeviceWithoutRoomGetsSome(t *testing.T) {
	r := newRig(t, Config{})
	r.most = 8 * 4096
	var keys []uint32
	for range 8 {
		keys = append(keys, r.use(r.alloc(4096), rw))
	}
	big := r.get(r.alloc(3*4096), rw)
	for i, k := range keys {
		if r.is(k) != (i >= 3) {
			t.Errorf("region %d is there: %v", i, r.is(k))
		}
	}
	counted(t, r.c, counts{"evictions": 3})
	// With nothing idle the device's word stands.
	var held []*Region
	for range 5 {
		held = append(held, r.get(r.alloc(4096), rw))
	}
	if _, err := r.s.Get(r.alloc(4096), rw); !exhausted(err) {
		t.Errorf("without room: %v", err)
	}
	for _, g := range append(held, big) {
		r.put(g)
	}
	r.use(r.alloc(4096), rw)
}

func TestBadRequestsAreRefused(t *testing.T) {
	r := newRig(t, Config{})
	b, _ := rdma.Alloc(4096)
	for _, c := range []struct {
		b rdma.Buffer
		a rdma.Access
	}{{rdma.Buffer{}, rw}, {b, rdma.RemoteWrite}, {b, 1 << 7}} {
		expect.Is(t, fmt.Sprintf("%d bytes with %#x", c.b.Len(), c.a), expect.Err(r.s.Get(c.b, c.a)), rdma.ErrInvalid)
	}
	b.Free()
	expect.Is(t, "freed memory", expect.Err(r.s.Get(b, rw)), rdma.ErrClosed)
	expect.Is(t, "negative bound", expect.Err(New(&fakeDevice{}, Config{MaxRegions: -1})), rdma.ErrInvalid)
}

func TestCloseWaitsForUsers(t *testing.T) {
	d := &fakeDevice{}
	c, _ := New(d, Config{Source: SourceArena})
	s, _ := c.Scope(0)
	g := get(t, s, alloc(t, 4096), rw)
	expect.Is(t, "in use", c.Close(), rdma.ErrBusy)
	g.Put()
	if err := c.Close(); err != nil || len(d.open) > 0 {
		t.Errorf("%v, %d left", err, len(d.open))
	}
	expect.Is(t, "Get of a closed cache", expect.Err(s.Get(alloc(t, 4096), rw)), rdma.ErrClosed)
}

func TestPutWithoutGetIsABug(t *testing.T) {
	r := newRig(t, Config{})
	g := r.get(r.alloc(4096), rw)
	r.put(g)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		g.state.Add(refOne)
	}()
	g.Put()
}

func TestAHitAllocatesNothing(t *testing.T) {
	r := newRig(t, Config{})
	b := r.alloc(4096)
	if n := testing.AllocsPerRun(100, func() {
		g := expect.Get(r.s.Get(b, rw))(t)
		g.Put()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
