// Package steps says which rank sends what to whom in an all-reduce: the algorithms as data. The order of sums differs
// between them: results of floats agree where every sum is exact.
package steps

import (
	"fmt"
	"slices"
)

// Span is a part of the vector, in elements.
type Span struct{ Off, N int }

// Step is what one rank sends and receives at once. Without a partner, or with an empty span, that half is nothing.
type Step struct {
	SendTo, RecvFrom int // ranks; -1: nobody
	Send, Recv       Span
	Add              bool // what arrives is added to what is there; else it replaces it
}

func Algorithms() []string { return []string{"ring", "halving", "doubling"} }

// Of is the list of one rank of p for n elements. ring is that of Patarasuk and Yuan (JPDC 2009). halving is recursive
// halving and doubling of Rabenseifner (ICCS 2004). doubling is recursive doubling (Thakur, Rabenseifner and Gropp,
// IJHPCA 2005).
func Of(algorithm string, rank, p, n int) ([]Step, error) {
	switch algorithm {
	case "ring":
		return ring(rank, p, n), nil
	case "halving":
		return halving(rank, p, n), nil
	case "doubling":
		return doubling(rank, p, n), nil
	}
	return nil, fmt.Errorf("no algorithm %q: want one of %v", algorithm, Algorithms())
}

func ring(rank, p, n int) (list []Step) {
	part := func(i int) Span {
		i = (i%p + p) % p
		return Span{i * n / p, (i+1)*n/p - i*n/p}
	}
	next, last := (rank+1)%p, (rank+p-1)%p
	for s := range p - 1 {
		list = append(list, Step{next, last, part(rank - s), part(rank - s - 1), true})
	}
	for s := range p - 1 {
		list = append(list, Step{next, last, part(rank + 1 - s), part(rank - s), false})
	}
	return list
}

func halving(rank, p, n int) []Step {
	return paired(rank, p, n, func(id, power int, rankOf func(id int) int) (list []Step) {
		var back []Step
		mine := Span{0, n}
		for mask := power / 2; mask > 0; mask /= 2 {
			other := rankOf(id ^ mask)
			low, high := Span{mine.Off, mine.N / 2}, Span{mine.Off + mine.N/2, mine.N - mine.N/2}
			keep, give := low, high
			if id&mask != 0 {
				keep, give = high, low
			}
			list = append(list, Step{other, other, give, keep, true})
			back = append(back, Step{other, other, keep, give, false})
			mine = keep
		}
		slices.Reverse(back)
		return append(list, back...)
	})
}

func doubling(rank, p, n int) []Step {
	return paired(rank, p, n, func(id, power int, rankOf func(id int) int) (list []Step) {
		all := Span{0, n}
		for mask := 1; mask < power; mask *= 2 {
			other := rankOf(id ^ mask)
			list = append(list, Step{other, other, all, all, true})
		}
		return list
	})
}

// paired are the steps among a power of two of ranks, and those around them that other numbers need: in as many pairs
// as there are ranks too many one stands aside.
func paired(rank, p, n int, of func(id, power int, rankOf func(id int) int) []Step) (list []Step) {
	power := 1
	for power*2 <= p {
		power *= 2
	}
	rest := p - power
	all, none := Span{0, n}, Span{}
	id := rank - rest
	switch {
	case rank < 2*rest && rank%2 == 0:
		return []Step{{rank + 1, -1, all, none, false}, {-1, rank + 1, none, all, false}}
	case rank < 2*rest:
		list = append(list, Step{-1, rank - 1, none, all, true})
		id = rank / 2
	}
	list = append(list, of(id, power, func(id int) int {
		if id < rest {
			return 2*id + 1
		}
		return id + rest
	})...)
	if rank < 2*rest {
		list = append(list, Step{rank - 1, -1, all, none, false})
	}
	return list
}
