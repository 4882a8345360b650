package ycsb

import "math"

// Theta is the exponent of the public tool's zipfian requests.
const Theta = 0.99

// scrambledItems are the public tool's ranks, whatever the number of records: the first has 3.78 % of requests.
const scrambledItems = 10_000_000_000

// zipf draws ranks 1 to n in proportion to rank^-s, exactly, by rejection-inversion (Hörmann and Derflinger, ACM TOMACS
// 6(3), 1996). Its n may change between draws.
type zipf struct {
	n    uint64
	s    float64
	low  float64 // integral up to 1.5, less the first rank's own weight
	high float64 // integral up to n+0.5
	cut  float64 // so near above its rank, a draw needs no test
}

func newZipf(n uint64, s float64) zipf {
	z := zipf{s: s}
	z.low = z.integral(1.5) - 1
	z.cut = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	z.resize(n)
	return z
}

func (z *zipf) resize(n uint64) {
	if n != z.n {
		z.n, z.high = n, z.integral(float64(n)+0.5)
	}
}

func (z *zipf) weight(x float64) float64 { return math.Pow(x, -z.s) }

func (z *zipf) integral(x float64) float64 { return (math.Pow(x, 1-z.s) - 1) / (1 - z.s) }

func (z *zipf) inverse(y float64) float64 { return math.Pow(1+(1-z.s)*y, 1/(1-z.s)) }

// rank draws one; random gives numbers in [0, 1).
func (z *zipf) rank(random func() float64) uint64 {
	for {
		y := z.high + random()*(z.low-z.high)
		x := z.inverse(y)
		k := min(max(math.Floor(x+0.5), 1), float64(z.n))
		// Of the bar over [k-0.5, k+0.5], of area weight(k), what the inverse hits outside is drawn again.
		if k-x <= z.cut || y >= z.integral(k+0.5)-z.weight(k) {
			return uint64(k)
		}
	}
}

// hash spreads record numbers over the keys: FNV-1a over the eight bytes, the lowest first, as the public tool does.
func hash(v uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for range 8 {
		h = (h ^ v&0xff) * 0x100000001b3
		v >>= 8
	}
	return h
}
