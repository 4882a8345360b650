package extent

import (
	"errors"
	"testing"
)

// A range is known by its offset, behind what lies in front of the space, and comes back once.
func TestRangesAreKnownByTheirOffsets(t *testing.T) {
	const base, size = 8*Page + 5*Align, 1 << 20
	s := New(base, size)
	taken := map[uint64]uint64{}
	for _, n := range []uint64{1, Align, Align + 1, Page - Align, Page - Align + 1, Page, 3 * Page, 100} {
		off, err := s.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		rounded := (n + Align - 1) / Align * Align
		if off < base || off+rounded > base+size || off%Align != 0 || rounded >= Page && off%Page != 0 {
			t.Errorf("%d bytes at %d", n, off)
		}
		for at, n := range taken {
			if off < at+n && at < off+rounded {
				t.Errorf("%d bytes at %d and %d at %d are taken twice", n, at, rounded, off)
			}
		}
		taken[off] = rounded
	}
	for _, n := range []uint64{0, size, ^uint64(0)} {
		if _, err := s.Alloc(n); !errors.Is(err, ErrFull) {
			t.Errorf("%d bytes beside others: %v", n, err)
		}
	}
	for off := range taken {
		if err := s.Free(off); err != nil {
			t.Error(err)
		}
		if err := s.Free(off); !errors.Is(err, ErrFree) {
			t.Errorf("freed twice: %v", err)
		}
	}
	if off, err := s.Alloc(size - Page); err != nil || off < base || s.Left() != Page {
		t.Errorf("nearly the whole space: %d, %v, %d bytes left", off, err, s.Left())
	}
}
