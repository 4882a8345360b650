package mesh

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Every element is the sum of two, at every length around the vectors and every alignment,
// also where the sum replaces one of them, and nothing beside them is touched.
func TestElementsAreAdded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 300 {
		off := r.IntN(16)
		a, b := make([]float32, off+n+8), make([]float32, off+n)
		for i := range b {
			a[i], b[i] = r.Float32(), r.Float32()
		}
		dst := make([]float32, off+n+8)
		add(dst[off:off+n], a[off:off+n], b[off:])
		was := slices.Clone(a)
		add(a[off:off+n], a[off:off+n], b[off:])
		for i := range a {
			want, kept := float32(0), was[i]
			if i >= off && i < off+n {
				want, kept = was[i]+b[i], was[i]+b[i]
			}
			if dst[i] != want || a[i] != kept {
				t.Fatalf("%d elements from %d: element %d is %v and %v, want %v and %v", n, off, i, dst[i], a[i],
					want, kept)
			}
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	dst, x, y := make([]float32, 32<<10), make([]float32, 32<<10), make([]float32, 32<<10)
	b.SetBytes(int64(len(dst) * elem))
	for b.Loop() {
		add(dst, x, y)
	}
}
