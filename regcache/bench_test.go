package regcache

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// BenchmarkHit is a Get and a Put of a region that is there, beside 1000 others, with so
// many threads: all on the same region, or each on its own. ns/op is what each pays.
func BenchmarkHit(b *testing.B) {
	for _, c := range []struct {
		threads int
		own     bool
	}{{1, true}, {2, true}, {2, false}, {4, false}} {
		b.Run(fmt.Sprintf("threads=%d/own=%v", c.threads, c.own), func(b *testing.B) {
			r := newRig(b, Config{})
			whole := r.alloc(8192 * 1000)
			for i := range 1000 {
				r.use(part(b, whole, 8192*i, 4096), rw)
			}
			var wg sync.WaitGroup
			var worst time.Duration
			var mu sync.Mutex
			n := b.N
			b.ResetTimer()
			for t := range c.threads {
				at := 500
				if c.own {
					at += 100 * t
				}
				buf := part(b, whole, 8192*at, 4096)
				wg.Add(1)
				go func() {
					defer wg.Done()
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					start := time.Now()
					for range n {
						g, err := r.s.Get(buf, rw)
						if err != nil {
							panic(err)
						}
						g.Put()
					}
					mu.Lock()
					worst = max(worst, time.Since(start))
					mu.Unlock()
				}()
			}
			wg.Wait()
			b.ReportMetric(float64(worst.Nanoseconds())/float64(n), "ns/each")
		})
	}
}

// BenchmarkUnmap is Map and Unmap of 16 MiB from a pool that defers, and from one that
// does not.
func BenchmarkUnmap(b *testing.B) {
	for _, deferred := range []int{0, 64 << 20} {
		b.Run(fmt.Sprintf("deferred=%d", deferred), func(b *testing.B) {
			r := newRig(b, Config{})
			p := r.pool(PoolConfig{Deferred: deferred, Piece: 16 << 20, Arena: rdma.ArenaConfig{}})
			for b.Loop() {
				unmapped(b, p, mapped(b, p, 16<<20))
			}
		})
	}
}
