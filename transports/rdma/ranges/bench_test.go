package ranges

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkIndex is an insertion while the index grows to 100,000 ranges, and a look-up then.
func BenchmarkIndex(b *testing.B) {
	const n = 100_000
	order := rand.New(rand.NewPCG(1, 2)).Perm(n)
	grown := func(place func(i int) int) *Index[*int] {
		x := new(Index[*int])
		for i := range n {
			i = place(i)
			x.Insert(Entry[*int]{uint64(i * 16), uint64(i*16 + 16), nil})
		}
		return x
	}
	random := func(i int) int { return order[i] }
	for _, how := range []struct {
		name  string
		place func(i int) int
	}{{"ascending", func(i int) int { return i }}, {"random", random}} {
		b.Run("insert "+how.name, func(b *testing.B) {
			for b.Loop() {
				grown(how.place)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/insert")
		})
	}
	x := grown(random)
	b.Run("look-up", func(b *testing.B) {
		i := 0
		for b.Loop() {
			x.At(uint64(order[i%n] * 16))
			i++
		}
	})
}
