package extent

import (
	"fmt"
	"testing"

	"github.com/rdmaperf/rdmaperf/internal/expect"
)

// A range is known by its offset, behind what lies in front of the space, and comes back once.
func TestRangesAreKnownByTheirOffsets(t *testing.T) {
	const base, size = 8*Page + 5*Align, 1 << 20
	s := New(base, size)
	taken := map[uint64]uint64{}
	for _, n := range []uint64{1, Align, Align + 1, Page - Align, Page - Align + 1, Page, 3 * Page, 100} {
		off := expect.Get(s.Alloc(n))(t)
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
		expect.Is(t, fmt.Sprintf("%d bytes beside others", n), expect.Err(s.Alloc(n)), ErrFull)
	}
	for off := range taken {
		expect.OK(t, s.Free(off))
		expect.Is(t, "freed twice", s.Free(off), ErrFree)
	}
	if off, err := s.Alloc(size - Page); err != nil || off < base || s.Left() != Page {
		t.Errorf("nearly the whole space: %d, %v, %d bytes left", off, err, s.Left())
	}
}
