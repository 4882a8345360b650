package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// fault makes the figures of some pairs worse by a factor.
type fault struct {
	name string
	slow func(n int, p Pair) bool
	want func(n int) string
}

func either(p Pair, ranks ...int) bool {
	return slices.Contains(ranks, p.From) || slices.Contains(ranks, p.To)
}

func is(want string) func(int) string { return func(int) string { return want } }

var faults = []fault{
	{"none", func(int, Pair) bool { return false }, is("[]")},
	{"a bad host", func(_ int, p Pair) bool { return either(p, 2) }, is("[host [2]]")},
	{"two bad hosts", func(_ int, p Pair) bool { return either(p, 0, 3) }, is("[host [0] host [3]]")},
	{"a host that sends slowly", func(_ int, p Pair) bool { return p.From == 1 }, is("[sends [1]]")},
	{"a host that takes slowly", func(_ int, p Pair) bool { return p.To == 1 }, is("[takes [1]]")},
	{"a bad path", func(_ int, p Pair) bool { return p.Link() == Link{1, 4} }, is("[path [1]-[4]]")},
	{"a bad direction of a path", func(_ int, p Pair) bool { return p == Pair{4, 1} }, is("[way [4]-[1]]")},
	{"a bad block", func(n int, p Pair) bool { return (p.From < n/2) != (p.To < n/2) }, func(n int) string {
		return fmt.Sprintf("[block %v-%v]", upTo(0, n/2), upTo(n/2, n))
	}},
	{"a bad uplink of two", func(n int, p Pair) bool { return (p.From < 2) != (p.To < 2) }, func(n int) string {
		return fmt.Sprintf("[block %v-%v]", upTo(0, 2), upTo(2, n))
	}},
}

func upTo(a, b int) (list []int) {
	for ; a < b; a++ {
		list = append(list, a)
	}
	return list
}

// simulate measures as the coordinator does: all rounds, three times again what is bad, and on many connections what is
// not explained by then. Values spread by some percent, and one of fifty is bad by chance.
func simulate(n int, rounds [][]Link, f fault, seed uint64) []Finding {
	rng := rand.New(rand.NewPCG(seed, 7))
	latency := &Measure{Name: "latency", Limit: 2, Whole: true}
	bandwidth := &Measure{Name: "bandwidth", More: true, Limit: 0.5}
	all := []*Measure{latency, bandwidth}
	measure := func(l Link) {
		noise := func() float64 {
			v := 1 + 0.05*rng.NormFloat64()
			if rng.IntN(50) == 0 {
				v *= 3
			}
			return max(v, 0.5)
		}
		there, back := Pair{l.A, l.B}, Pair{l.B, l.A}
		us := 10 * noise()
		if f.slow(n, there) || f.slow(n, back) {
			us *= 4
		}
		latency.Add(there, us)
		for _, p := range []Pair{there, back} {
			gbs := 1 / noise()
			if f.slow(n, p) {
				gbs /= 4
			}
			bandwidth.Add(p, gbs)
		}
	}
	for _, l := range slices.Concat(rounds...) {
		measure(l)
	}
	for _, l := range slices.Repeat(Again(n, all), 3) {
		measure(l)
	}
	for range Connections / Some {
		for _, l := range slices.Repeat(Sweep(all), Some) {
			measure(l)
		}
	}
	return Of(all)
}

// Of several equal paths between two ranks one may be slow, which only some connections take.
func TestOneOfSeveralEqualPathsIsFoundByManyConnections(t *testing.T) {
	for slow, want := range map[int]string{0: "[]", 3: "[]", 6: "[path [1]-[4]]", Connections: "[path [1]-[4]]"} {
		m := &Measure{Name: "latency", Limit: 2, Whole: true}
		for _, l := range slices.Concat(All(6)...) {
			m.Add(Pair{l.A, l.B}, 1)
		}
		p := Pair{1, 4}
		m.Values[p] = []float64{9, 1, 9, 1} // bad, and one time of three again
		if got := Sweep([]*Measure{m}); !slices.Equal(got, []Link{p.Link()}) {
			t.Fatalf("tried on many connections: %v", got)
		}
		for i := range Connections {
			if m.Add(p, 1); i < slow {
				m.Values[p][len(m.Values[p])-1] = 9
			}
		}
		got := Of([]*Measure{m})
		if fmt.Sprint(got) != want {
			t.Errorf("%d of %d connections slow: %v, want %s", slow, Connections, got, want)
		}
		if e := got; len(e) > 0 && (e[0].Evidence[0].Again != slow+1 || e[0].Evidence[0].Times != Connections+3) {
			t.Errorf("evidence %+v", e[0].Evidence[0])
		}
	}
	m := &Measure{Name: "latency", Limit: 2, Whole: true, Values: map[Pair][]float64{{0, 1}: {1, 1, 1, 1},
		{0, 2}: {9, 1, 1, 1}, {1, 2}: {1}}}
	if got := Sweep([]*Measure{m}); len(got) != 0 {
		t.Errorf("bad once, never again: %v", got)
	}
	for _, p := range []Pair{{0, 3}, {1, 3}, {2, 3}} {
		m.Values[p] = []float64{1}
	}
	m.Values[Pair{0, 2}] = []float64{9, 9, 9, 9}
	if got := Sweep([]*Measure{m}); len(got) != 1 {
		t.Errorf("bad each of three times: %v", got)
	}
	m.Values[Pair{0, 2}] = slices.Repeat([]float64{9}, 4+Some)
	if got := Sweep([]*Measure{m}); len(got) != 0 {
		t.Errorf("bad each of many times: %v", got)
	}
}

// With the few pairs of halves a suspect meets two good ranks more, which tells a host from a path.
func TestPlantedFaultsAreNamedInTenOfTenTrials(t *testing.T) {
	for _, c := range []struct {
		rounds func(int) [][]Link
		faults []fault
		ranks  []int
	}{{All, faults, []int{8, 9, 16, 32}},
		{Halves, []fault{faults[0], faults[1], faults[3], faults[4]}, []int{8, 9, 64}}} {
		for _, f := range c.faults {
			for _, n := range c.ranks {
				for seed := range uint64(10) {
					if got := fmt.Sprint(simulate(n, c.rounds(n), f, seed)); got != f.want(n) {
						t.Errorf("%s, %d ranks, seed %d: %s, want %s", f.name, n, seed, got, f.want(n))
					}
				}
			}
		}
	}
}

func TestTwoRanksHaveNothingToBeComparedWith(t *testing.T) {
	if got := simulate(2, All(2), faults[1], 1); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestAPairThatFailsIsBad(t *testing.T) {
	m := &Measure{Name: "bandwidth", More: true, Limit: 0.5}
	for _, l := range slices.Concat(All(6)...) {
		for _, p := range []Pair{{l.A, l.B}, {l.B, l.A}} {
			v := 1.0
			if l == (Link{2, 3}) {
				v = m.Failed()
			}
			m.Add(p, v)
		}
	}
	for _, l := range Again(6, []*Measure{m}) {
		m.Add(Pair{l.A, l.B}, m.Failed())
		m.Add(Pair{l.B, l.A}, m.Failed())
	}
	if got := fmt.Sprint(Of([]*Measure{m})); got != "[path [2]-[3]]" {
		t.Errorf("%s", got)
	}
}

// Pairs within a host are ten times faster, which makes the others no suspects.
func TestPairsOfAnotherClassAreNotCompared(t *testing.T) {
	m := &Measure{Name: "bandwidth", More: true, Limit: 0.5, Class: func(p Pair) string {
		return fmt.Sprint(p.From/2 == p.To/2)
	}}
	for _, l := range slices.Concat(All(8)...) {
		v := 1.0
		if l.A/2 == l.B/2 {
			v = 10
		}
		m.Add(Pair{l.A, l.B}, v)
	}
	if got := Of([]*Measure{m}); len(got) != 0 || len(Again(8, []*Measure{m})) != 0 {
		t.Errorf("%v", got)
	}
}

func TestRoundsAreDisjointAndMeetEachPairOnce(t *testing.T) {
	for n := 2; n <= 17; n++ {
		seen := map[Link]int{}
		rounds := All(n)
		if want := n - 1 + n%2; len(rounds) != want {
			t.Errorf("%d ranks: %d rounds, want %d", n, len(rounds), want)
		}
		for _, round := range rounds {
			ranks := map[int]bool{}
			for _, l := range round {
				if ranks[l.A] || ranks[l.B] || l.A >= l.B || l.B >= n {
					t.Fatalf("%d ranks: %v", n, round)
				}
				ranks[l.A], ranks[l.B] = true, true
				seen[l]++
			}
		}
		if len(seen) != n*(n-1)/2 {
			t.Errorf("%d ranks: %d pairs", n, len(seen))
		}
	}
	for name, c := range map[string]struct {
		rounds [][]Link
		pairs  int
	}{"halves": {Halves(9), 5}, "nearest": {Nearest(10, 2), 20}, "all by nearest": {Nearest(5, 9), 10},
		"sample": {Sample(10, 3, 1), 0}} {
		pairs := 0
		for _, round := range c.rounds {
			ranks := map[int]bool{}
			for _, l := range round {
				if ranks[l.A] || ranks[l.B] {
					t.Errorf("%s: %v", name, round)
				}
				ranks[l.A], ranks[l.B] = true, true
				pairs++
			}
		}
		if len(c.rounds) > 7 {
			t.Errorf("%s: %d rounds", name, len(c.rounds))
		}
		if c.pairs > 0 && pairs != c.pairs {
			t.Errorf("%s: %d pairs, want %d", name, pairs, c.pairs)
		}
	}
}

// What was measured while others used a processor is evidence only if it is bad without that time and at twice the pace, too.
func TestContendedMeasurementsAreEvidenceBeyondTheirShare(t *testing.T) {
	m := &Measure{Name: "latency", Limit: 2, Whole: true}
	for _, l := range slices.Concat(All(6)...) {
		if p := (Pair{l.A, l.B}); l.A == 0 {
			m.AddDoubtful(p, 9, 0.6)
		} else {
			m.Add(p, 1)
		}
	}
	again := Again(6, []*Measure{m})
	if len(again) != 5 {
		t.Errorf("again: %v", again)
	}
	for _, l := range again {
		m.AddDoubtful(Pair{l.A, l.B}, 9, 0.6)
	}
	if got := Of([]*Measure{m}); len(got) != 0 {
		t.Errorf("found %v", got)
	}
	for w := range m.doubt {
		m.doubt[w] = 0.3
	}
	if got := fmt.Sprint(Of([]*Measure{m})); got != "[host [0]]" {
		t.Errorf("of 9 times and a share of 0.3: found %s", got)
	}
	clear(m.doubt)
	for _, l := range again {
		m.Add(Pair{l.A, l.B}, 9)
	}
	if got := fmt.Sprint(Of([]*Measure{m})); got != "[host [0]]" {
		t.Errorf("found %s", got)
	}
}
