package ranges

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Thousands of ranges come and go one by one and in runs, so that chunks and branches are
// cut, emptied and used again; every one that is there is found by each of its ends, by its
// overlap and in its order, and no other.
func TestManyRangesComeAndGo(t *testing.T) {
	const places, wide, step = 3000, 12, 16
	for seed := range uint64(2) {
		var x Index[int]
		r := rand.New(rand.NewPCG(seed, 1))
		there := make([]bool, places)
		entry := func(i int) Entry[int] { return Entry[int]{uint64(i*step + 2), uint64(i*step + 2 + wide), i} }
		put := func(i int) {
			if got := x.Insert(entry(i)); got == there[i] {
				t.Fatalf("seed %d: insert place %d: %v", seed, i, got)
			}
			there[i] = true
		}
		take := func(i int) {
			if _, got := x.Remove(entry(i).Base); got != there[i] {
				t.Fatalf("seed %d: remove place %d: %v", seed, i, got)
			}
			there[i] = false
		}
		check := func() {
			t.Helper()
			var want, all []int
			for i, is := range there {
				e := entry(i)
				if is {
					want = append(want, i)
				}
				for _, addr := range []uint64{e.Base - 1, e.Base, e.End - 1, e.End} {
					got, ok := x.At(addr)
					if inside := is && addr >= e.Base && addr < e.End; ok != inside || ok && got != e {
						t.Fatalf("seed %d: at %d: %v %v, want %v %v", seed, addr, got, ok, e, inside)
					}
				}
				n := 0
				x.Overlapping(e.Base, e.End, func(o Entry[int]) bool { n++; return true })
				x.Overlapping(e.End-1, e.End, func(o Entry[int]) bool { n++; return true })
				if want := 2; is && n != want || !is && n != 0 || x.Free(e.Base, e.Base+1) == is {
					t.Fatalf("seed %d: %d overlaps with place %d, which is there: %v", seed, n, i, is)
				}
				// Half over the edge to the next one.
				if over := (Entry[int]{e.End - 1, e.End + step - wide, -1}); is && x.Insert(over) ||
					i+1 < places && there[i+1] && x.Insert(Entry[int]{e.End, e.End + step - wide + 1, -1}) {
					t.Fatalf("seed %d: an overlap with place %d or the next was taken", seed, i)
				}
			}
			x.All(func(e Entry[int]) bool { all = append(all, e.Val); return true })
			if !slices.Equal(all, want) || x.Len() != len(want) {
				t.Fatalf("seed %d: %d in order of %d, Len %d", seed, len(all), len(want), x.Len())
			}
		}
		// One range over all places that are free from i on, at most 40: it reaches over where
		// chunks and branches began.
		long := func(i int) {
			j := i
			for j < places && j < i+40 && !there[j] {
				j++
			}
			if j == i {
				return
			}
			e := Entry[int]{entry(i).Base, entry(j - 1).End, -1}
			if !x.Insert(e) {
				t.Fatalf("seed %d: insert places %d to %d", seed, i, j)
			}
			for k := i; k < j; k++ {
				got, ok := x.At(entry(k).Base)
				n := 0
				x.Overlapping(entry(k).Base, entry(k).End, func(Entry[int]) bool { n++; return true })
				if !ok || got != e || n != 1 || x.Insert(entry(k)) {
					t.Fatalf("seed %d: place %d of a range over %d to %d: %v %v, %d overlaps", seed, k, i, j, got,
						ok, n)
				}
			}
			if j < places && there[j] && x.Insert(Entry[int]{e.End - 1, entry(j).Base, -1}) {
				t.Fatalf("seed %d: an overlap with the end of a range over %d to %d was taken", seed, i, j)
			}
			x.Remove(e.Base)
		}
		for _, i := range r.Perm(places) {
			put(i)
		}
		check()
		for range 20 {
			for range 200 {
				if i := r.IntN(places); there[i] {
					take(i)
				} else {
					put(i)
				}
			}
			from, n := r.IntN(places), r.IntN(places/2) // a run leaves, in either direction
			for k := range min(n, places-from) {
				i := from + k
				if seed%2 == 1 {
					i = from + min(n, places-from) - 1 - k
				}
				if there[i] {
					take(i)
				}
			}
			check()
			for i := range places {
				long(i)
			}
			for range 300 {
				if i := r.IntN(places); !there[i] {
					put(i)
				}
			}
			check()
		}
		for _, i := range r.Perm(places) {
			if there[i] {
				take(i)
			}
		}
		check()
		put(7)
		check()
	}
}
