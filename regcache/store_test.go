package regcache

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestStoreKeepsMemoryAndLocalRegistrations(t *testing.T) {
	r := newRig(t, Config{})
	s := NewStore(StoreConfig{Piece: 128 << 10, Keep: 256 << 10})
	var was uint64
	for i := range 5 {
		b := expect.Get(s.Alloc(100 << 10))(t)
		if b.Addr()%pageSize != 0 || i > 0 && b.Addr() != was {
			t.Fatalf("memory at %#x behind %#x", b.Addr(), was)
		}
		was = b.Addr()
		local, ring := r.get(b, rdma.LocalWrite), r.get(b, rw)
		key := ring.RKey()
		if err := ring.Revoke(); err != nil || r.is(key) {
			t.Fatalf("the key is good: %v", err)
		}
		r.put(local)
		expect.OK(t, s.Free(b))
		expect.Is(t, "freed twice", s.Free(b), rdma.ErrClosed)
	}
	if regs, _ := r.count(); regs != 1+5 {
		t.Errorf("%d registrations", regs)
	}
	if taken, mapped := s.Sizes(); taken != 0 || mapped != 128<<10 {
		t.Errorf("%d taken, %d mapped", taken, mapped)
	}
	expect.OK(t, s.Close())
	counted(t, r.c, counts{"bytes": 0})
	expect.Is(t, "behind Close", expect.Err(s.Alloc(1)), rdma.ErrClosed)
}

// A store holds no more than what is taken, Keep, and one piece.
func TestStoreIsBounded(t *testing.T) {
	const keep = 128 << 10
	s := NewStore(StoreConfig{Keep: keep})
	rnd := rand.New(rand.NewPCG(3, 3))
	var have []rdma.Buffer
	for range 2000 {
		if len(have) < 8 && rnd.IntN(2) == 0 {
			b := expect.Get(s.Alloc(1 + rnd.IntN(64<<10)))(t)
			b.Bytes()[0], b.Bytes()[b.Len()-1] = 1, 1
			have = append(have, b)
		} else if len(have) > 0 {
			i := rnd.IntN(len(have))
			expect.OK(t, s.Free(have[i]))
			have = append(have[:i], have[i+1:]...)
		}
		free := 0
		for _, p := range s.pieces {
			if p.taken == 0 {
				free += p.len()
			}
		}
		if free > keep && len(have) > 0 && free > keep+64<<10 {
			t.Fatalf("%d bytes of free pieces", free)
		}
	}
	expect.OK(t, s.Close())
	for _, b := range have { // still there
		b.Bytes()[0] = 2
		expect.OK(t, s.Free(b))
	}
	if taken, mapped := s.Sizes(); taken != 0 || mapped != 0 {
		t.Errorf("%d taken, %d mapped at the end", taken, mapped)
	}
	expect.Is(t, "nothing", s.Free(rdma.Buffer{}), rdma.ErrInvalid)
}

// What a device uses is given to nobody, and goes with its last use.
func TestStoreMemoryInUseIsHeld(t *testing.T) {
	worlds(t, func(t *testing.T, m mover) {
		_, s := over(t, m, Config{})
		st := NewStore(StoreConfig{Piece: 256 << 10, Keep: 1 << 20})
		b := expect.Get(st.Alloc(64 << 10))(t)
		g := get(t, s, b, all)
		expect.OK(t, st.Free(b))
		for range 5 {
			x := expect.Get(st.Alloc(64 << 10))(t)
			if x.Addr() == b.Addr() {
				t.Fatal("memory that a device uses is somebody else's")
			}
			defer st.Free(x)
		}
		lands(t, m, g, b, 3)
		if err := st.Close(); err == nil && present(b.Addr(), b.Len()) == false {
			t.Error("unmapped in use")
		}
		key := g.RKey()
		expect.OK(t, g.Put())
		refused(t, m, key, b.Addr(), "freed memory")
	})
}

func TestStoreServesManyThreads(t *testing.T) {
	r := newRig(t, Config{})
	s := NewStore(StoreConfig{Piece: 64 << 10, Keep: 64 << 10})
	var wg sync.WaitGroup
	for u := range 8 {
		wg.Go(func() {
			for i := range 100 {
				b, err := s.Alloc(4096 * (1 + (u+i)%4))
				if err != nil {
					t.Error(err)
					return
				}
				p := b.Bytes()
				p[0] = byte(u)
				g, err := r.s.Get(b, rw)
				if err != nil {
					t.Error(err)
					return
				}
				if p[0] != byte(u) {
					t.Errorf("thread %d finds %d", u, p[0])
				}
				if err := errors.Join(g.Revoke(), s.Free(b)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	expect.OK(t, s.Close())
}
