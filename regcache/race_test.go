package regcache

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Thirty-two users get, put, free and evict on the same memory. Whoever holds a region
// finds its registration open and its memory mapped.
func TestManyUsersAtOnce(t *testing.T) {
	const users, rounds, slots = 32, 400, 24
	r := newRig(t, Config{MaxRegions: 10, MaxAge: time.Nanosecond})
	r.most = 40 * 4096
	var mem [slots]struct {
		sync.RWMutex // an owner does not free under its own users' hands
		b            rdma.Buffer
	}
	for i := range mem {
		mem[i].b, _ = rdma.Alloc(4 * 4096)
	}
	var wg sync.WaitGroup
	var got, busy atomic.Int64
	for u := range users {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(u), 7))
			for range rounds {
				m := &mem[rnd.IntN(slots)]
				switch n := rnd.IntN(100); {
				case n < 4: // freed while others use its regions, and there is another
					m.Lock()
					if err := m.b.Free(); err != nil {
						t.Error(err)
					}
					m.b, _ = rdma.Alloc(4 * 4096)
					m.Unlock()
				case n < 6:
					if err := r.c.Trim(time.Now()); err != nil {
						t.Error(err)
					}
				default:
					m.RLock()
					off := rnd.IntN(4) * 4096
					p, _ := m.b.Slice(off, 4096*(1+rnd.IntN(4-off/4096)))
					g, err := r.s.Get(p, []rdma.Access{0, rdma.RemoteRead, rw, rw | rdma.RemoteRead}[rnd.IntN(4)])
					m.RUnlock() // from here on the owner may free it
					if err != nil {
						if !exhausted(err) && !errors.Is(err, rdma.ErrBusy) {
							t.Error(err)
						}
						busy.Add(1)
						continue
					}
					if !r.is(g.LKey()) {
						t.Error("got a closed registration")
					}
					atomic.AddUint32((*uint32)(unsafe.Pointer(&p.Bytes()[0])), 1) // mapped, or the test dies
					got.Add(1)
					if err := g.Put(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	n := r.c.Counters()
	if n.Gets != uint64(got.Load()) || n.Puts != n.Gets || n.Regions > 10 {
		t.Errorf("%d got: %+v", got.Load(), n)
	}
	if regs, deregs := r.count(); uint64(regs) != n.MemRegs || uint64(deregs) != n.MemDeregs ||
		regs-deregs != n.Regions {
		t.Errorf("%d registered, %d closed: %+v", regs, deregs, n)
	}
	t.Logf("%d got, %d without room: %+v", got.Load(), busy.Load(), n)
	for i := range mem {
		mem[i].b.Free()
	}
}
