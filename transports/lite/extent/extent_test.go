package extent

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func TestRangesNeverOverlapAndComeBackWhole(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const base, size = 4096, 1 << 20
	s := New(base, size)
	owner := make([]int, size/Align)
	live := map[uint64]uint64{}
	for step := 1; step < 20000; step++ {
		if rng.IntN(2) == 0 {
			n := 1 + rng.Uint64N(20000)>>rng.IntN(9) // around a page and far below
			off, err := s.Alloc(n)
			if err != nil {
				if !errors.Is(err, ErrFull) {
					t.Fatal(err)
				}
				continue
			}
			if align := uint64(Align); off%align != 0 || (n+Align-1)/Align*Align >= Page && off%Page != 0 {
				t.Fatalf("step %d: %d bytes at %d", step, n, off)
			}
			live[off] = n
			for i := (off - base) / Align; i < (off-base+n+Align-1)/Align; i++ {
				if owner[i] != 0 {
					t.Fatalf("step %d: unit %d given twice", step, i)
				}
				owner[i] = step
			}
			continue
		}
		for off, n := range live {
			for i := (off - base) / Align; i < (off-base+n+Align-1)/Align; i++ {
				owner[i] = 0
			}
			if err := s.Free(off); err != nil {
				t.Fatal(err)
			}
			if err := s.Free(off); !errors.Is(err, ErrFree) {
				t.Fatalf("freed twice: %v", err)
			}
			delete(live, off)
			break
		}
	}
	for off := range live {
		if err := s.Free(off); err != nil {
			t.Fatal(err)
		}
	}
	if off, err := s.Alloc(size); err != nil || off != base {
		t.Fatalf("the whole space: %d, %v", off, err)
	}
}
