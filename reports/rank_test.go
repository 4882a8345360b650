package reports

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The rank is ceil(q·n) in exact arithmetic.
func TestRankIsTheCeiling(t *testing.T) {
	for _, p := range []struct {
		percent  float64
		num, den int64
	}{{50, 1, 2}, {90, 9, 10}, {99, 99, 100}, {99.9, 999, 1000}, {99.99, 9999, 10000}, {99.999, 99999, 100000}} {
		for n := int64(1); n <= 1_000_000; n = n*21/20 + 1 {
			for _, m := range []int64{n, n / 1000 * 1000} {
				if m == 0 {
					continue
				}
				x := new(big.Int).Mul(big.NewInt(p.num), big.NewInt(m))
				x.Add(x, big.NewInt(p.den-1)).Div(x, big.NewInt(p.den))
				if got := rank(p.percent, m); got != max(x.Int64(), 1) {
					t.Fatalf("rank of %v %% of %d is %d, want %d", p.percent, m, got, x.Int64())
				}
			}
		}
	}
}

// Percentiles of few samples are the samples themselves, by the sorted list.
func TestPercentilesAreSamples(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	percents := []float64{50, 90, 99, 99.9, 99.99, 99.999}
	for range 300 {
		h := hdrhistogram.New(LowestNs, HighestNs, Digits)
		samples := make([]int64, 1+r.IntN(3000))
		for i := range samples {
			samples[i] = r.Int64N(2000) // each has a bucket of its own
			if err := h.RecordValue(samples[i]); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(samples)
		for i, v := range ValuesAt(h, percents) {
			if want := samples[rank(percents[i], int64(len(samples)))-1]; v != want {
				t.Fatalf("%v %% of %d samples is %d, want %d", percents[i], len(samples), v, want)
			}
		}
	}
	if got := ValuesAt(hdrhistogram.New(LowestNs, HighestNs, Digits), percents); !slices.Equal(got,
		make([]int64, len(percents))) {
		t.Errorf("no samples: %v", got)
	}
}
