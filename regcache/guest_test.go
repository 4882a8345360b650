package regcache

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// byOthers runs a test with who registers a pool's memory that is not the pool's: with rights that the pool has not, and
// another owner's.
func byOthers(t *testing.T, f func(t *testing.T, m mover, c *Cache, s *Scope, p *Pool, o *Scope)) {
	for _, who := range []string{"more rights", "another owner"} {
		t.Run(who, func(t *testing.T) {
			worlds(t, func(t *testing.T, m mover) {
				c, s := over(t, m, Config{})
				o := s
				if who == "another owner" {
					o = expect.Get(c.Scope(0))(t)
				}
				pool := PoolConfig{Access: rdma.LocalWrite, Piece: 1 << 20, Deferred: 1 << 20}
				f(t, m, c, s, expect.Get(s.NewPool(pool))(t), o)
			})
		})
	}
}

// A key that somebody else has of a pool's memory reaches no later owner of it: neither
// while it is used, nor when it was kept.
func TestPoolMemoryWithOtherKeysIsNotHandedOut(t *testing.T) {
	byOthers(t, func(t *testing.T, m mover, c *Cache, s *Scope, p *Pool, other *Scope) {
		b := mapped(t, p, 64<<10)
		g := get(t, other, b, all)
		lands(t, m, g, b, 1)
		key, addr := g.RKey(), b.Addr()
		unmapped(t, p, b)
		for range 4 { // in use: its memory is nobody's
			x := mapped(t, p, 64<<10)
			if x.Addr() == addr {
				t.Fatal("memory under a key that is used is somebody else's")
			}
			defer unmapped(t, p, x)
		}
		t.Cleanup(func() { expect.OK(t, p.Close()) })
		lands(t, m, g, b, 2)
		expect.OK(t, g.Put())
		refused(t, m, key, addr, "memory that was unmapped")

		b = mapped(t, p, 64<<10)
		g = get(t, other, b, all)
		key, addr = g.RKey(), b.Addr()
		g.Put() // a region of another owner is kept now
		unmapped(t, p, b)
		refused(t, m, key, addr, "a region that was kept")
		if n := c.pieces.Len(); n != 1 {
			t.Fatalf("%d pieces", n)
		}
		c.mu.Lock()
		for _, pc := range p.pieces {
			if n := pc.outside.Load(); n != 0 {
				t.Errorf("%d outside registrations are left", n)
			}
		}
		c.mu.Unlock()
		expect.Is(t, "unmapped memory", expect.Err(s.Get(b, all)), rdma.ErrClosed)
	})
}

// Memory that was unmapped while the pool's own key was in use waits for the keys of
// others, too.
func TestMemoryUnmappedInUseWaitsForOtherKeys(t *testing.T) {
	byOthers(t, func(t *testing.T, m mover, c *Cache, s *Scope, p *Pool, other *Scope) {
		b := mapped(t, p, 64<<10)
		own, g := get(t, s, b, rdma.LocalWrite), get(t, other, b, all)
		unmapped(t, p, b)
		own.Put()
		x := mapped(t, p, 64<<10)
		if x.Addr() == b.Addr() {
			t.Error("memory under a key that is used is somebody else's")
		}
		lands(t, m, g, b, 1)
		key := g.RKey()
		g.Put()
		unmapped(t, p, x)
		expect.OK(t, p.Close())
		if m.Write(key, b.Addr(), []byte{1}) == nil {
			t.Error("the key outlives the memory")
		}
	})
}

// Revoke ends a key at once, whatever the bounds are, and of several users by the last.
func TestRevoke(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		c, s := over(t, m, Config{})
		b := alloc(t, 64<<10)
		g := get(t, s, b, all)
		lands(t, m, g, b, 1)
		key := g.RKey()
		expect.OK(t, g.Revoke())
		refused(t, m, key, b.Addr(), "a region that was revoked")
		g, h := get(t, s, b, all), get(t, s, b, all)
		if g != h || g.RKey() == key {
			t.Fatal("the region is not a new one that both share")
		}
		expect.OK(t, g.Revoke())
		x := get(t, s, b, all)
		if x == h {
			t.Error("a hit on what was revoked")
		}
		lands(t, m, h, b, 3) // its other user is not done
		key = h.RKey()
		h.Put()
		refused(t, m, key, b.Addr(), "a region whose last user went")
		lands(t, m, x, b, 5)
		x.Revoke()
		counted(t, c, counts{"regions": 0, "bytes": 0})
		if n := c.Counters(); n.Gets != n.Puts {
			t.Errorf("%+v", n)
		}
	})
}
