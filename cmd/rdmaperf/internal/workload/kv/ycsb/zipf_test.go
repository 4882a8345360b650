package ycsb

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
)

// chiSquare is Pearson's statistic and its limit: the mean plus six standard
// deviations of its distribution, which a right sequence does not reach.
func chiSquare(t *testing.T, seen []int, want []float64) (stat, limit float64) {
	t.Helper()
	n, sum := 0, 0.0
	for i := range seen {
		n += seen[i]
		sum += want[i]
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Fatalf("expected shares sum to %v", sum)
	}
	for i, s := range seen {
		e := want[i] * float64(n)
		if e == 0 {
			if s > 0 {
				return math.Inf(1), 0
			}
			continue
		}
		if e < 5 {
			t.Fatalf("cell %d: %v expected, too few for the statistic", i, e)
		}
		stat += (float64(s) - e) * (float64(s) - e) / e
	}
	df := float64(len(seen) - 1)
	return stat, df + 6*math.Sqrt(2*df)
}

func analytic(n int, s float64) []float64 {
	p, zeta := make([]float64, n), Zeta(uint64(n), s)
	for i := range p {
		p[i] = math.Pow(float64(i+1), -s) / zeta
	}
	return p
}

// The published constant is that of the public tool's ScrambledZipfianGenerator.
func TestZetaIsTheSum(t *testing.T) {
	if got, want := Zeta(scrambledItems, Theta), 26.46902820178302; math.Abs(got-want) > 1e-9 {
		t.Errorf("zeta(1e10, 0.99) = %.12f, want %.12f", got, want)
	}
	for _, n := range []uint64{1, 2, 999, 1000, 1001, 100_000} {
		for _, s := range []float64{0.5, 0.99, 1.2} {
			sum := 0.0
			for i := uint64(1); i <= n; i++ {
				sum += math.Pow(float64(i), -s)
			}
			if got := Zeta(n, s); math.Abs(got-sum) > 1e-9*sum {
				t.Errorf("zeta(%d, %v) = %.12f, want %.12f", n, s, got, sum)
			}
		}
	}
}

func TestZipfIsExact(t *testing.T) {
	for _, c := range []struct {
		n int
		s float64
	}{{2, Theta}, {10, Theta}, {1000, Theta}, {1000, 0.5}, {300, 1.5}} {
		rng := rand.New(rand.NewPCG(1, uint64(c.n)))
		z, seen := newZipf(uint64(c.n), c.s), make([]int, c.n)
		for range 500_000 {
			seen[z.rank(rng.Float64)-1]++
		}
		if stat, limit := chiSquare(t, seen, analytic(c.n, c.s)); stat > limit {
			t.Errorf("n %d, s %v: chi-square %.0f, limit %.0f", c.n, c.s, stat, limit)
		}
		// The test tells a slightly different exponent apart.
		if c.n == 1000 {
			if stat, limit := chiSquare(t, seen, analytic(c.n, c.s+0.02)); stat < limit {
				t.Errorf("n %d: exponent %v passes for %v", c.n, c.s, c.s+0.02)
			}
		}
	}
}

// Ranks stay in their range at its ends, and one rank is one rank.
func TestZipfStaysInRange(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, scrambledItems} {
		z := newZipf(n, Theta)
		for _, u := range []float64{0, math.SmallestNonzeroFloat64, 0.5, math.Nextafter(1, 0)} {
			first := true
			k := z.rank(func() float64 {
				if first {
					first = false
					return u
				}
				return 0.25
			})
			if k < 1 || k > n {
				t.Errorf("n %d, random %v: rank %d", n, u, k)
			}
		}
	}
	z := newZipf(5, Theta)
	z.resize(50)
	if other := newZipf(50, Theta); z != other {
		t.Errorf("resized %+v, made %+v", z, other)
	}
}

func TestHashIsFNV1a(t *testing.T) {
	for _, v := range []uint64{0, 1, 255, 256, 1<<63 + 12345, math.MaxUint64} {
		h := fnv.New64a()
		for i := range 8 {
			h.Write([]byte{byte(v >> (8 * i))})
		}
		if got := hash(v); got != h.Sum64() {
			t.Errorf("hash(%d) = %x, want %x", v, got, h.Sum64())
		}
	}
}
