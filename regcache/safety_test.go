package regcache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/regcache/pin"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The ten tests of what "safe" means, each with real memory and real operations.

// sources are those that this system grants for foreign memory.
func sources(t *testing.T, f func(t *testing.T, s Source)) {
	for _, s := range []Source{SourceUffd, SourcePagemap} {
		t.Run(s.String(), func(t *testing.T) {
			src, err := open(s)
			if err != nil {
				t.Skipf("not granted here: %v", err)
			}
			src.close()
			f(t, s)
		})
	}
}

// 1. The same address with other pages is other memory.
func TestSafeAddressIsUsedAgain(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		b := expect.Get(rdma.Alloc(64 << 10))(t)
		key, addr := used(t, m, s, b, 1), b.Addr()
		b.Free()
		for i := 0; ; i++ {
			if b = alloc(t, 64<<10); b.Addr() == addr {
				break
			} else if i == 100 {
				t.Fatal("the system gives the address to nobody: the test shows nothing")
			}
		}
		refused(t, m, key, addr, "what was at the address before")
		if used(t, m, s, b, 2) == key {
			t.Fatal("a hit on what was there before")
		}
	})
	t.Run("foreign", func(t *testing.T) {
		sources(t, func(t *testing.T, src Source) {
			m := pinned(t, pin.Config{})
			_, s := over(t, m, Config{Source: src})
			raw, b := foreign(t, 64<<10)
			raw[0] = 1
			if key := used(t, m, s, b, 1); used(t, m, s, b, 1) != key {
				t.Fatal("nothing is kept: the test shows nothing")
			}
			rawUnmap(t, b.Addr(), b.Len())
			rawMap(t, b.Addr(), b.Len())
			if src == SourceUffd { // it knows that the memory it was told of is gone
				expect.Is(t, "unmapped memory", expect.Err(s.Get(b, all)), rdma.ErrClosed)
				b, _ = rdma.Foreign(raw)
				t.Cleanup(func() { b.Free() })
			}
			used(t, m, s, b, 2) // in the new pages
		})
	})
}

// 2. Memory that is unmapped with an operation in flight goes when the operation ends.
func TestSafeUnmapInFlight(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		b, _ := rdma.Alloc(64 << 10)
		g := get(t, s, b, all)
		b.Free()
		for range 20 {
			if x := alloc(t, 64<<10); x.Addr() < b.Addr()+uint64(b.Len()) && b.Addr() < x.Addr()+uint64(x.Len()) {
				t.Fatal("the memory of an operation in flight is somebody else's")
			}
		}
		lands(t, m, g, b, 3)
		key := g.RKey()
		expect.OK(t, g.Put())
		if present(b.Addr(), b.Len()) {
			t.Error("mapped after the operation")
		}
		refused(t, m, key, b.Addr(), "freed memory")
	})
}

// 3. A hole in the memory takes the regions that reach into it, and no others.
func TestSafePartialUnmap(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		c, err := New(m, Config{Source: SourceUffd})
		if err != nil {
			t.Skipf("not granted here: %v", err)
		}
		t.Cleanup(func() { c.Close() })
		s, _ := c.Scope(0)
		const page = 4096
		_, b := foreign(t, 16*page)
		before, across, after := part(t, b, 0, 4*page), part(t, b, 6*page, 4*page), part(t, b, 12*page, 4*page)
		var keys []uint32
		for i, x := range []rdma.Buffer{before, across, after} {
			keys = append(keys, used(t, m, s, x, byte(10+i)))
		}
		rawUnmap(t, b.Addr()+8*page, page)
		expect.Is(t, "memory with a hole", expect.Err(s.Get(across, all)), rdma.ErrClosed)
		refused(t, m, keys[1], across.Addr(), "memory with a hole")
		for i, x := range []rdma.Buffer{before, after} {
			if used(t, m, s, x, byte(20+i)) != keys[2*i] {
				t.Error("a region beside the hole is gone")
			}
		}
		for _, x := range []rdma.Buffer{b, part(t, b, 7*page, 2*page), part(t, b, 8*page, page)} {
			expect.Is(t, fmt.Sprintf("%d bytes with the hole", x.Len()), expect.Err(s.Get(x, all)), rdma.ErrClosed)
		}
	})
}

// 4. Memory that moves is not at its old address, and is at its new one: where others get
// the address, and where it stays mapped without its pages (mremap(2), MREMAP_DONTUNMAP).
func TestSafeMremap(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		sources(t, func(t *testing.T, src Source) {
			_, pins := m.(*pin.Registrar)
			if src == SourcePagemap && !pins {
				t.Skip("pagemap is asked at a hit: a device that reaches memory by its address faults before")
			}
			for name, flags := range map[string]uintptr{"others": 0, "emptied": unix.MREMAP_DONTUNMAP} {
				t.Run(name, func(t *testing.T) { moves(t, m, src, flags) })
			}
		})
	})
}

func moves(t *testing.T, m mover, src Source, flags uintptr) {
	_, s := over(t, m, Config{Source: src})
	raw, b := foreign(t, 32<<10)
	key := used(t, m, s, b, 1)
	room := rawMap(t, 0, 32<<10)
	to := b2addr(room)
	if _, _, errno := unix.Syscall6(unix.SYS_MREMAP, uintptr(b.Addr()), uintptr(len(raw)), uintptr(len(raw)),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED|flags, uintptr(to), 0); errno != 0 {
		t.Fatal(errno)
	}
	if flags == 0 {
		rawMap(t, b.Addr(), len(raw)) // others' memory, at the old address
	}
	if src == SourceUffd {
		// The call returns when the event was read; who asks waits until all have heard.
		expect.Is(t, "memory that moved", expect.Err(s.Get(b, all)), rdma.ErrClosed)
		refused(t, m, key, b.Addr(), "memory that moved")
		b, _ = rdma.Foreign(raw)
		t.Cleanup(func() { b.Free() })
	}
	used(t, m, s, b, 5)
	if room[0] != 2 {
		t.Errorf("the moved memory was written to: %d", room[0])
	}
	moved := expect.Get(rdma.Foreign(room))(t)
	used(t, m, s, moved, 7)
	moved.Free()
	rawUnmap(t, to, len(room))
}

func b2addr(b []byte) uint64 { f, _ := rdma.Foreign(b); defer f.Free(); return f.Addr() }

// 5. Pages that are given back are others at the next touch.
func TestSafeDontneed(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		sources(t, func(t *testing.T, src Source) {
			c, s := over(t, m, Config{Source: src})
			raw, b := foreign(t, 32<<10)
			used(t, m, s, b, 1)
			expect.OK(t, unix.Madvise(raw, unix.MADV_DONTNEED))
			if raw[0] != 0 {
				t.Fatal("the old pages are there")
			}
			used(t, m, s, b, 2)
			counted(t, c, counts{"regions_inv_unmap": 1, "misses": 2})
		})
	})
}

// 6. Children do not come between a device and the parent's memory.
func TestSafeFork(t *testing.T) {
	m := pinned(t, pin.Config{})
	for _, noFork := range []bool{false, true} {
		_, s := over(t, m, Config{})
		p := expect.Get(s.NewPool(PoolConfig{Access: all, Piece: 1 << 20, Arena: rdma.ArenaConfig{NoFork: noFork}}))(t)
		b := mapped(t, p, 8192)
		b.Bytes()[0] = 1
		g := get(t, s, b, all)
		has := expect.Get(whileForked(b.Addr(), func() {
			b.Bytes()[0], b.Bytes()[4096] = 2, 3 // copied on write, for one of the two
			lands(t, m, g, b, 9)
		}))(t)
		if has == noFork {
			t.Errorf("no fork %v: the child has the memory: %v", noFork, has)
		}
		lands(t, m, g, b, 11)
		g.Put()
		p.Unmap(b)
		expect.OK(t, p.Close())
	}
}

// 7. Overlapping regions: each key reaches the memory, before and after they are joined.
func TestSafeOverlap(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		b := alloc(t, 64<<10)
		left, right := part(t, b, 0, 40<<10), part(t, b, 24<<10, 40<<10)
		g, h := get(t, s, left, all), get(t, s, right, all)
		if g == h {
			t.Fatal("the first region covers the second")
		}
		lands(t, m, g, left, 1)
		lands(t, m, h, right, 3)
		lands(t, m, h, left, 5) // it covers both
		key := g.RKey()
		g.Put()
		refused(t, m, key, left.Addr(), "a region that was joined")
		lands(t, m, h, right, 7)
		h.Put()
		if x := get(t, s, left, all); x.RKey() != h.RKey() {
			t.Error("the joined region is not found")
		} else {
			x.Put()
		}
	})
}

// 8. More rights are another key, and the old one has no more than it had.
func TestSafeUpgrade(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		b := alloc(t, 32<<10)
		ro := get(t, s, b, rdma.RemoteRead)
		b.Bytes()[0] = 77
		var v [1]byte
		if err := m.Read(ro.RKey(), b.Addr(), v[:]); err != nil || v[0] != 77 {
			t.Fatalf("read: %v, %d", err, v[0])
		}
		_, kernel := m.(*pin.Registrar)
		if !kernel { // it enforces no rights
			refused(t, m, ro.RKey(), b.Addr(), "a registration without remote write")
		}
		w := get(t, s, b, rw)
		lands(t, m, w, b, 1) // and what could be read can be
		if !kernel {
			refused(t, m, ro.RKey(), b.Addr(), "the registration before the upgrade")
		}
		key := ro.RKey()
		ro.Put()
		w.Put()
		if m.Read(key, b.Addr(), v[:]) == nil {
			t.Error("the registration before the upgrade is open")
		}
	})
}

// 9. Thirty-two threads get, write, put and free.
func TestSafeManyThreads(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		c, s := over(t, m, Config{MaxRegions: 8})
		var wg sync.WaitGroup
		for u := range 32 {
			wg.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for i := range 12 {
					b, err := rdma.Alloc(3 * 4096)
					if err != nil {
						t.Error(err)
						return
					}
					for j := range 3 {
						p, _ := b.Slice(j*4096, 4096*(3-j))
						g, err := s.Get(p, all)
						if err != nil {
							t.Error(err)
							continue
						}
						v := byte(u*7 + i*3 + j)
						if err := m.Write(g.RKey(), p.Addr(), []byte{v}); err != nil || p.Bytes()[0] != v {
							t.Errorf("thread %d: %v, %d instead of %d", u, err, p.Bytes()[0], v)
						}
						if j == 2 && i%2 == 0 {
							b.Free() // in use
						}
						g.Put()
					}
					if i%2 == 1 {
						b.Free()
					}
				}
			})
		}
		wg.Wait()
		if n := c.Counters(); n.Gets != 32*12*3 || n.Puts != n.Gets || n.Regions != 0 || n.Bytes != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// 10. What is unmapped late is bounded, and comes back with its key.
func TestSafeDeferredBytes(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		const bound = 256 << 10
		p := expect.Get(s.NewPool(PoolConfig{Access: all, Piece: 128 << 10, Deferred: bound}))(t)
		rnd := rand.New(rand.NewPCG(1, 1))
		for i := range 100 {
			b := mapped(t, p, 4096*(1+rnd.IntN(20)))
			g := get(t, s, b, all)
			lands(t, m, g, b, byte(i))
			if i%3 == 0 { // in use while it is unmapped
				unmapped(t, p, b)
				lands(t, m, g, b, byte(i+1))
				g.Put()
			} else {
				g.Put()
				unmapped(t, p, b)
			}
			if n := p.Counters(); n.Deferred > bound {
				t.Fatalf("%d bytes deferred", n.Deferred)
			}
		}
		n := p.Counters()
		if n.Revived == 0 || n.Flushes == 0 {
			t.Errorf("%+v", n)
		}
		expect.OK(t, p.Close())
		if n := p.Counters(); n.Deferred != 0 || n.Bytes != 0 {
			t.Errorf("%+v after the end", n)
		}
	})
}

// Without a source, memory that a system call unmaps leaves a stale registration: a hit
// on pages that are nobody's any more. That is what the sources are for.
func TestNoSourceLeavesStaleRegistrations(t *testing.T) {
	m := pinned(t, pin.Config{})
	c, s := over(t, m, Config{Source: SourceNone})
	_, b := foreign(t, 32<<10)
	used(t, m, s, b, 1)
	rawUnmap(t, b.Addr(), b.Len())
	now := rawMap(t, b.Addr(), b.Len())
	stale := get(t, s, b, all)
	if err := m.Write(stale.RKey(), b.Addr(), []byte{42}); err != nil || now[0] != 0 {
		t.Fatalf("%v, the memory holds %d: the hole is closed, and the documents say it is open", err, now[0])
	}
	stale.Put()
	counted(t, c, counts{"hits_fast": 1, "unmap_events": 0})
}

// A region that is on its way out, or whose memory its owner gave back, is nobody's hit, whoever
// still holds it in an old copy of the table; and who looked leaves no use behind.
func TestSafeRegionOnItsWayOut(t *testing.T) {
	gone, back := new(Region), new(Region)
	if !gone.kill() {
		t.Fatal("a region without users is closed by who kills it")
	}
	back.state.Store(parked)
	for name, r := range map[string]*Region{"dead": gone, "parked": back} {
		if r.take() || r.users() != 0 {
			t.Errorf("%s: taken, %d users", name, r.users())
		}
	}
	if r := new(Region); !r.take() || r.users() != 1 {
		t.Error("one that is alive is not taken")
	}
}
