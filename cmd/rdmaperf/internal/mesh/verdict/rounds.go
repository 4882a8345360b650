package verdict

import "math/rand/v2"

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
