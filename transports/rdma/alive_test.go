package rdma

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const alive = 100_000

// BenchmarkAlive is how long memory takes to come and to go beside 100,000 others: blocks of an arena, with nobody and
// with one cache that is notified of memory that leaves; declared memory, which is the index and the hook alone;
// mappings; and the system calls of those without any of this package. grow-ns is the mean of those that come until
// they are 100,000. Then some go and as many come in their place; ns of each is the median of the rounds, so that what
// disturbs a few is not in it.
func BenchmarkAlive(b *testing.B) {
	const (
		round = 500 // arbitrary
		size  = 4096
	)
	type kind struct {
		name    string
		watched bool
		make    func(b *testing.B) (come func(i int) (Buffer, error), end func())
		bare    bool // memory that goes by munmap
	}
	arena := func(b *testing.B) (func(int) (Buffer, error), func()) {
		a, err := NewArena(alive*size*2, ArenaConfig{})
		if err != nil {
			b.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		return func(int) (Buffer, error) { return a.Alloc(1+r.IntN(2*size), 64) }, func() { a.Close() }
	}
	declared := func(b *testing.B) (func(int) (Buffer, error), func()) {
		raw, err := mapMemory(2*alive*pageSize, 0)
		if err != nil {
			b.Fatal(err)
		}
		return func(i int) (Buffer, error) { return Foreign(raw[2*i*pageSize : (2*i+1)*pageSize]) },
			func() { unmapMemory(raw) }
	}
	for _, k := range []kind{
		{"arena", false, arena, false},
		{"arena,watched", true, arena, false},
		{"declared,watched", true, declared, false},
		{"mapping,watched", true, func(*testing.B) (func(int) (Buffer, error), func()) {
			return func(int) (Buffer, error) { return Alloc(size) }, func() {}
		}, false},
		{"system-calls", false, func(*testing.B) (func(int) (Buffer, error), func()) {
			return func(int) (Buffer, error) {
				raw, err := mapMemory(size, 0)
				return Buffer{b: raw}, err
			}, func() {}
		}, true},
	} {
		b.Run(k.name, func(b *testing.B) {
			if k.watched {
				heard := 0
				defer Watch(func(*Leaving) { heard++ })()
			}
			come, end := k.make(b)
			live := make([]Buffer, alive)
			began := time.Now()
			for i := range live {
				var err error
				if live[i], err = come(i); err != nil {
					b.Fatal(err)
				}
			}
			grown := time.Since(began)
			goes := func(x Buffer) error {
				if k.bare {
					return unmapMemory(x.b)
				}
				return x.Free()
			}
			order := rand.New(rand.NewPCG(1, 2)).Perm(alive)
			var comes, leaves []float64
			n := 0
			for b.Loop() {
				at := order[n*round%alive:][:round]
				n++
				t0 := time.Now()
				for _, i := range at {
					if err := goes(live[i]); err != nil {
						b.Fatal(err)
					}
				}
				t1 := time.Now()
				for _, i := range at {
					x, err := come(i)
					if err != nil {
						b.Fatal(fmt.Errorf("one of %d: %w", alive, err))
					}
					live[i] = x
				}
				leaves = append(leaves, float64(t1.Sub(t0).Nanoseconds())/round)
				comes = append(comes, float64(time.Since(t1).Nanoseconds())/round)
			}
			for _, x := range live {
				if err := goes(x); err != nil {
					b.Fatal(err)
				}
			}
			end()
			slices.Sort(comes)
			slices.Sort(leaves)
			b.ReportMetric(0, "ns/op") // of a round: says nothing
			b.ReportMetric(float64(grown.Nanoseconds())/alive, "grow-ns")
			b.ReportMetric(comes[len(comes)/2], "alloc-ns")
			b.ReportMetric(leaves[len(leaves)/2], "free-ns")
		})
	}
}
