package verdict

import (
	"math/rand/v2"
)

// A Link is two ranks, the lower first.
type Link struct{ A, B int }

// LinkOf is the link of two ranks in any order.
func LinkOf(a, b int) Link { return Link{min(a, b), max(a, b)} }

// All are the rounds in which each rank meets each other once, of disjoint pairs (the circle method).
func All(n int) (rounds [][]Link) {
	m := n + n%2 // the rank n of an odd n is a pause
	for r := range m - 1 {
		var round []Link
		for i := range m / 2 {
			a, b := (r+i)%(m-1), (r-i+m-1)%(m-1)
			if i == 0 {
				b = m - 1
			}
			if a < n && b < n {
				round = append(round, LinkOf(a, b))
			}
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// Halves is the upper half against the lower in one round, and for odd n one pair more.
func Halves(n int) (rounds [][]Link) {
	var links []Link
	for i := range n / 2 {
		links = append(links, LinkOf(i, i+n/2))
	}
	if n%2 == 1 && n > 1 {
		links = append(links, LinkOf(0, n-1))
	}
	return Disjoint(links)
}

// Nearest are the pairs whose ranks are at most k apart, around the end.
func Nearest(n, k int) [][]Link {
	seen := map[Link]bool{}
	var links []Link
	for d := 1; d <= min(k, n/2); d++ {
		for i := range n {
			if l := LinkOf(i, (i+d)%n); !seen[l] {
				seen[l] = true
				links = append(links, l)
			}
		}
	}
	return Disjoint(links)
}

// Sample are k rounds, in each of which a rank meets one other by chance, or fewer where all have met.
func Sample(n, k int, seed uint64) (rounds [][]Link) {
	rng := rand.New(rand.NewPCG(seed, 0))
	seen := map[Link]bool{}
	for len(rounds) < k && len(seen) < n*(n-1)/2 {
		var round []Link
		order := rng.Perm(n)
		for i := 0; i+1 < n; i += 2 {
			if l := LinkOf(order[i], order[i+1]); !seen[l] {
				seen[l] = true
				round = append(round, l)
			}
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// Disjoint puts links into rounds in which no rank is twice: each into the first where both are free.
func Disjoint(links []Link) (rounds [][]Link) {
	in := map[int]map[int]bool{} // by rank: its rounds
	for _, l := range links {
		at := 0
		for in[l.A][at] || in[l.B][at] {
			at++
		}
		if at == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[at] = append(rounds[at], l)
		for _, r := range []int{l.A, l.B} {
			if in[r] == nil {
				in[r] = map[int]bool{}
			}
			in[r][at] = true
		}
	}
	return rounds
}

type control struct {
	at    int     // how many measurements had been taken again before it
	pace  float64 // its value as a part of the pair's first, at most 1
	class string
}

// AddControl takes a further measurement of a good pair: what is bad next to it must be bad at its pace, too.
func (m *Measure) AddControl(p Pair, v float64) {
	if len(m.Values[p]) == 0 || v == m.Failed() {
		return
	}
	pace := m.Values[p][0] / v
	if m.More {
		pace = 1 / pace
	}
	m.controls = append(m.controls, control{m.again, min(pace, 1), m.class(p)})
}

func (m *Measure) pace(p Pair, i int) float64 {
	if i == 0 || len(m.controls) == 0 {
		return 1
	}
	pace := 1.0
	for _, c := range m.controls {
		switch {
		case c.class != m.class(p):
		case c.at <= m.order[p][i-1]:
			pace = c.pace
		default:
			return min(pace, c.pace)
		}
	}
	return pace
}

// Control is a good pair to measure between those that are measured again, of ranks with the fewest bad pairs; false
// where there is none.
func Control(measures []*Measure, again []Link) (best Link, ok bool) {
	if len(again) == 0 {
		return best, false
	}
	known, out, bad := map[Link]bool{}, map[Link]bool{}, map[int]int{}
	for _, l := range again {
		out[l] = true
	}
	for _, m := range measures {
		for l, is := range m.judge(true).links {
			known[l] = true
			if is {
				out[l] = true
				bad[l.A]++
				bad[l.B]++
			}
		}
	}
	class := func(l Link) string { return measures[0].class(Pair{l.A, l.B}) }
	for _, l := range sortedLinks(known) {
		if out[l] || class(l) != class(again[0]) {
			continue
		}
		if !ok || bad[l.A]+bad[l.B] < bad[best.A]+bad[best.B] {
			best, ok = l, true
		}
	}
	return best, ok
}
