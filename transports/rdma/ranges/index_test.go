package ranges

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

type list []Entry[int]

func (l list) at(addr uint64) (Entry[int], bool) {
	for _, e := range l {
		if e.Base <= addr && addr < e.End {
			return e, true
		}
	}
	return Entry[int]{}, false
}

func (l list) overlapping(base, end uint64) (hits list) {
	for _, e := range l {
		if e.Base < end && base < e.End && base < end {
			hits = append(hits, e)
		}
	}
	return hits
}

func (l list) sort() {
	slices.SortFunc(l, func(a, b Entry[int]) int { return cmp.Compare(a.Base, b.Base) })
}

func TestIndexAgreesWithAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index[int]
		var model list
		// Some histories only grow at first, so that chunks and branches are cut.
		filled := rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(0, 3000)).Draw(t, "filled")
		addr := rapid.Uint64Range(0, uint64(max(4000, filled*8+100)))
		for i := range filled {
			e := Entry[int]{uint64(i * 8), uint64(i*8 + 5), -i}
			if !x.Insert(e) {
				t.Fatalf("insert %v refused", e)
			}
			model = append(model, e)
		}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				base := addr.Draw(t, "base")
				length := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(0, 4000)).Draw(t, "len")
				e := Entry[int]{base, base + length, len(model)}
				want := e.Base < e.End && len(model.overlapping(e.Base, e.End)) == 0
				if got := x.Insert(e); got != want {
					t.Fatalf("insert %v: %v, want %v", e, got, want)
				}
				if want {
					model = append(model, e)
					model.sort()
				}
			},
			"remove": func(t *rapid.T) {
				base := addr.Draw(t, "base")
				if len(model) > 0 && rapid.Bool().Draw(t, "one that is there") {
					base = rapid.SampledFrom(model).Draw(t, "entry").Base
				}
				i := slices.IndexFunc(model, func(e Entry[int]) bool { return e.Base == base })
				got, ok := x.Remove(base)
				if ok != (i >= 0) || ok && got != model[i] {
					t.Fatalf("remove %d: %v %v, want index %d", base, got, ok, i)
				}
				if ok {
					model = slices.Delete(model, i, i+1)
				}
			},
			"remove many": func(t *rapid.T) {
				gone := model.overlapping(addr.Draw(t, "from"), addr.Draw(t, "to"))
				model = slices.DeleteFunc(model, func(e Entry[int]) bool { return slices.Contains(gone, e) })
				if rapid.Bool().Draw(t, "backwards") {
					slices.Reverse(gone)
				}
				for _, e := range gone {
					x.Remove(e.Base)
				}
			},
			"insert many": func(t *rapid.T) {
				from := addr.Draw(t, "from")
				for i := range uint64(rapid.IntRange(0, 500).Draw(t, "n")) {
					e := Entry[int]{from + i*8, from + i*8 + 5, -1}
					want := len(model.overlapping(e.Base, e.End)) == 0
					if got := x.Insert(e); got != want {
						t.Fatalf("insert %v: %v, want %v", e, got, want)
					}
					if want {
						model = append(model, e)
					}
				}
				model.sort()
			},
			"": func(t *rapid.T) {
				a, b := addr.Draw(t, "addr"), addr.Draw(t, "end")
				got, ok := x.At(a)
				if want, there := model.at(a); ok != there || got != want {
					t.Fatalf("at %d: %v %v, want %v %v", a, got, ok, want, there)
				}
				var hits list
				x.Overlapping(a, b, func(e Entry[int]) bool { hits = append(hits, e); return true })
				if want := model.overlapping(a, b); !slices.Equal(hits, want) {
					t.Fatalf("overlapping [%d,%d): %v, want %v", a, b, hits, want)
				}
				var all list
				x.All(func(e Entry[int]) bool { all = append(all, e); return true })
				if !slices.Equal(all, model) || x.Len() != len(model) {
					t.Fatalf("%d entries in order of %d, want %d", len(all), x.Len(), len(model))
				}
				for _, e := range model {
					first, ok := x.At(e.Base)
					last := Entry[int]{}
					x.Overlapping(e.End-1, e.End, func(o Entry[int]) bool { last = o; return true })
					if !ok || first != e || last != e {
						t.Fatalf("%v is not found by both ends: %v, %v", e, first, last)
					}
				}
			},
		})
	})
}

// What stays is found at every moment, whatever a writer does to its neighbours. What stays
// came over places where chunks begin, so that some of it is in the chunk in front, and most
// of the rest leaves in runs, so that chunks and branches are emptied and cut.
func TestReadersFindWhatStays(t *testing.T) {
	const n, every, wide = 4096, 32, 8
	var x Index[int]
	for i := range n {
		x.Insert(Entry[int]{uint64(i * 16), uint64(i*16 + 16), i})
	}
	for i := 0; i < n; i += every {
		for k := range wide {
			x.Remove(uint64((i + k) * 16))
		}
		x.Insert(Entry[int]{uint64(i * 16), uint64((i + wide) * 16), i})
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for seed := range uint64(2) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(1, seed))
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := r.IntN(n/every) * every
				if e, ok := x.At(uint64(i*16 + r.IntN(wide*16))); !ok || e.Val != i {
					t.Errorf("range %d: found %v %v", i, e, ok)
					return
				}
			}
		}()
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		from, run := r.IntN(n), r.IntN(n/4)
		for i := from; i < min(n, from+run); i++ {
			if i%every >= wide {
				x.Remove(uint64(i * 16))
			}
		}
		for range 600 {
			if i := r.IntN(n); i%every >= wide {
				if _, ok := x.Remove(uint64(i * 16)); !ok {
					x.Insert(Entry[int]{uint64(i * 16), uint64(i*16 + 16), i})
				}
			}
		}
	}
	close(stop)
	wg.Wait()
}

func TestLookingUpAllocatesNothing(t *testing.T) {
	var x Index[int]
	for i := range 1000 {
		x.Insert(Entry[int]{uint64(i * 16), uint64(i*16 + 16), i})
	}
	if n := testing.AllocsPerRun(100, func() { x.At(8000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
