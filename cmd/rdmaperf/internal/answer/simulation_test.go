package answer

import (
	"math"
	"math/rand/v2"
	"testing"
)

const simComparisons = 20

// plan cuts the 2.4 s of a stack and figure into slices.
type plan struct {
	rounds int
	slice  float64 // s
}

var (
	usual = plan{24, 0.1}
	finer = plan{32, 0.075}
)

// host has a pace that changes between 1 and 1.4 every 2 to 5 s, as a machine with a neighbour does.
type host struct {
	rng          *rand.Rand
	now, changes float64
	slow         bool
}

// pass lets one slice go by and returns how much longer things took in it.
func (h *host) pass(slice float64) float64 {
	pace, left := 0., slice
	for left > 0 {
		if h.now >= h.changes {
			h.slow, h.changes = !h.slow, h.now+2+3*h.rng.Float64()
		}
		part := min(left, h.changes-h.now)
		p := 1.
		if h.slow {
			p = 1.4
		}
		pace += p * part / slice
		h.now, left = h.now+part, left-part
	}
	return pace
}

// run counts the comparisons that are told, and those told the wrong way round; b takes factor times as long as a.
func (h *host) run(p plan, factor float64, noise spread) (told, wrong int) {
	var a, b [simComparisons][]float64
	for round := range p.rounds {
		for k := range simComparisons {
			for i := range 2 {
				v := h.pass(p.slice) * noise(h.rng, h.now, p.slice)
				if (round+i)%2 == 0 {
					a[k] = append(a[k], v)
				} else {
					b[k] = append(b[k], factor*v)
				}
			}
		}
	}
	for k := range simComparisons {
		if in := Pairs(b[k], a[k], Level(simComparisons)); in.Within == nil {
			panic("the rounds are enough for 20 comparisons")
		} else if in.Within[0] > 1 {
			told++
		} else if in.Within[1] < 1 {
			told, wrong = told+1, wrong+1
		}
	}
	return told, wrong
}

// spread is by how much a slice at a time takes longer than the pace says.
type spread func(rng *rand.Rand, now, slice float64) float64

// lognormal has that deviation in a window of 0.4 s, so twice of it in a quarter of that.
func lognormal(sigma float64) spread {
	return func(rng *rand.Rand, _, slice float64) float64 {
		return math.Exp(sigma * math.Sqrt(0.4/slice) * rng.NormFloat64())
	}
}

// simulate is the part of runs that told anything, and of comparisons that were told the right way.
func simulate(t *testing.T, seed uint64, runs int, p plan, factor float64, noise spread) (any, found float64) {
	t.Logf("seed %d, %d runs", seed, runs)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range runs {
		h := host{rng: rng, changes: 5 * rng.Float64(), slow: rng.IntN(2) == 0}
		told, wrong := h.run(p, factor, noise)
		if told > 0 {
			any++
		}
		found += float64(told-wrong) / simComparisons
	}
	return any / float64(runs), found / float64(runs)
}

// Of runs that compare a stack with itself at most one of twenty says anything, whatever the noise is.
func TestEqualStacksAreSeldomToldApart(t *testing.T) {
	for seed, c := range []struct {
		name  string
		noise spread
	}{
		{"sigma 2 %", lognormal(0.02)},
		{"sigma 5 %", lognormal(0.05)},
		{"sigma 15 %", lognormal(0.15)},
		{"skewed: exponential stalls", func(rng *rand.Rand, _, _ float64) float64 { return 1 + 0.2*rng.ExpFloat64() }},
		{"heavy tail: Pareto with infinite variance", func(rng *rand.Rand, _, _ float64) float64 {
			return math.Pow(1-rng.Float64(), -1/1.5)
		}},
		{"drifting: a hundredth slower every second", func(rng *rand.Rand, now, _ float64) float64 {
			return (1 + now/100) * math.Exp(0.1*rng.NormFloat64())
		}},
		{"two values only, as of a coarse clock", func(rng *rand.Rand, _, _ float64) float64 {
			return 1 + float64(rng.IntN(2))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			any, _ := simulate(t, uint64(seed), 1000, usual, 1, c.noise)
			t.Logf("%.1f %% of runs of equal stacks have a false sentence", 100*any)
			if any > 0.05 {
				t.Error("want at most 5 %")
			}
		})
	}
}

func TestATrueDifferenceIsFound(t *testing.T) {
	for seed, c := range []struct {
		plan
		sigma, factor, least float64
	}{
		{usual, 0.02, 1.2, 0.99}, {usual, 0.02, 1.1, 0.97}, {usual, 0.05, 1.3, 0.99}, {usual, 0.15, 2, 0.95},
		{usual, 0.05, 1.2, 0.88}, // 89.5 % of 10,000: four of 24 are cut off at either end; five are too many
		{finer, 0.05, 1.2, 0.90},
	} {
		_, found := simulate(t, uint64(100+seed), 200, c.plan, c.factor, lognormal(c.sigma))
		t.Logf("%d slices of %v s, sigma %.0f %%: %.1f %% of true %.1fx found", c.rounds, c.slice, 100*c.sigma,
			100*found, c.factor)
		if found < c.least {
			t.Errorf("want at least %.0f %%", 100*c.least)
		}
	}
}
