package engine

import (
	"math"
	"slices"
	"testing"
)

func TestPacerIsConstantWithoutDrift(t *testing.T) {
	for _, c := range []struct {
		interval float64
		n        int
		due      int64 // of operation n, from the start
	}{
		{1000, 0, 0}, {1000, 1, 1000}, {1000, 1_000_000, 1_000_000_000},
		{1e9 / 3, 3_000_000, 1_000_000_000_000_000}, // a third of a second is no whole number of ns
		{0.5, 7, 3},
	} {
		p := NewPacer(c.interval, false, 1)
		p.Start(500)
		for range c.n {
			p.Next()
		}
		if got := p.Due() - 500; got != c.due {
			t.Errorf("operation %d every %v ns is due at %d, want %d", c.n, c.interval, got, c.due)
		}
	}
}

// Exponential gaps have the interval as mean and standard deviation, and a share of 1/e is longer.
func TestPacerPoisson(t *testing.T) {
	const interval, n = 1000.0, 200_000
	p := NewPacer(interval, true, 42)
	p.Start(0)
	var sum, squares float64
	longer, before := 0, int64(0)
	for range n {
		p.Next()
		gap := float64(p.Due() - before)
		if gap < 0 {
			t.Fatal("time ran backwards")
		}
		before = p.Due()
		sum += gap
		squares += gap * gap
		if gap > interval {
			longer++
		}
	}
	mean := sum / n
	dev := math.Sqrt(squares/n - mean*mean)
	share := float64(longer) / n
	// Four standard errors of each figure at this n.
	if math.Abs(mean-interval) > 9 || math.Abs(dev-interval) > 13 || math.Abs(share-1/math.E) > 0.005 {
		t.Errorf("mean %.1f, deviation %.1f, longer %.4f, want 1000, 1000, 0.3679", mean, dev, share)
	}
}

func TestPacerRepeatsItsSeed(t *testing.T) {
	a, b, c := NewPacer(100, true, 7), NewPacer(100, true, 7), NewPacer(100, true, 8)
	same := 0
	for _, p := range []*Pacer{a, b, c} {
		p.Start(0)
	}
	for range 100 {
		a.Next()
		b.Next()
		c.Next()
		if a.Due() != b.Due() {
			t.Fatal("one seed gives two sequences")
		}
		if a.Due() == c.Due() {
			same++
		}
	}
	if same > 10 {
		t.Errorf("another seed gives %d of the same times", same)
	}
	first := a.Due()
	a.Start(0)
	for range 100 {
		a.Next()
	}
	if a.Due() != first {
		t.Error("a new start is another sequence")
	}
}

// What is overdue are the arrivals, each with its wait; of very many, groups that waited no longer than they did.
func TestOverdueArrivals(t *testing.T) {
	p := NewPacer(1000, false, 1)
	p.Start(0)
	for range 3 {
		p.Next()
	}
	var waits []int64
	if n := p.Overdue(10_000, func(waited, n int64) {
		for range n {
			waits = append(waits, waited)
		}
	}); n != 7 || !slices.Equal(waits, []int64{7000, 6000, 5000, 4000, 3000, 2000, 1000}) {
		t.Errorf("%d overdue, waits %v", n, waits)
	}
	if n := p.Overdue(10_000, func(int64, int64) { t.Error("again") }); n != 0 {
		t.Errorf("%d overdue again", n)
	}
	for _, poisson := range []bool{false, true} {
		p = NewPacer(10, poisson, 1)
		p.Start(0)
		const end = 100_000_000 // ten million arrivals
		var calls, sum, counted int64
		last := int64(end)
		total := p.Overdue(end, func(waited, n int64) {
			if waited > last || waited < 0 {
				t.Fatalf("waited %d after %d", waited, last)
			}
			last = waited
			calls, sum, counted = calls+1, sum+waited*n, counted+n
		})
		if counted != total || math.Abs(float64(total)-1e7) > 1e4 || calls > 3*overdueExact {
			t.Errorf("poisson %v: %d overdue, %d given in %d groups, want 10,000,000", poisson, total, counted, calls)
		}
		if mean := float64(sum) / float64(counted); mean > end/2*1.001 || mean < end/2*0.99 {
			t.Errorf("poisson %v: mean wait %.0f, want %d or little less", poisson, mean, end/2)
		}
	}
}

func TestPatternsTellTheirInputsApart(t *testing.T) {
	const n = 4099 // not a multiple of 8
	base := PatternState(1, 1, 0, 0)
	want := make([]byte, n)
	FillPattern(want, base)
	if i, _ := MatchPattern(want, base); i != -1 {
		t.Fatalf("a filled buffer differs from its own pattern at %d", i)
	}
	for name, other := range map[string]uint64{
		"seed": PatternState(2, 1, 0, 0), "generation": PatternState(1, 2, 0, 0),
		"lane": PatternState(1, 1, 1, 0), "slot": PatternState(1, 1, 0, 1),
	} {
		if i, _ := MatchPattern(want, other); i < 0 || i > 8 {
			t.Errorf("another %s: first difference at %d, want one in the first bytes", name, i)
		}
	}
}

// From any byte of a sequence on, at any length, the first wrong byte is named.
func TestMatchPatternAtNamesTheByte(t *testing.T) {
	all := make([]byte, 120)
	state := PatternState(3, 1, 2, 3)
	FillPattern(all, state)
	for at := range 20 {
		for n := range 80 {
			b := append([]byte(nil), all[at:at+n]...)
			if i, _ := MatchPatternAt(b, state, at); i >= 0 {
				t.Fatalf("%d bytes from %d: byte %d differs", n, at, i)
			}
			for i := range b {
				b[i] ^= 0x40
				if got, want := MatchPatternAt(b, state, at); got != i || want != all[at+i] {
					t.Fatalf("%d bytes from %d, byte %d changed: %d, %#x", n, at, i, got, want)
				}
				b[i] ^= 0x40
			}
		}
	}
}

func TestFirstNonZeroFindsEveryPosition(t *testing.T) {
	b := make([]byte, 37)
	if i := FirstNonZero(b); i != -1 {
		t.Fatalf("zeros: %d, want -1", i)
	}
	for i := range b {
		b[i] = 1
		if at := FirstNonZero(b); at != i {
			t.Fatalf("byte %d set: %d", i, at)
		}
		b[i] = 0
	}
}

// The number of any word of a sequence is known from it.
func TestWordsTellTheirNumbers(t *testing.T) {
	state := PatternState(3, 1, 2, 3)
	for _, i := range []int{0, 1, 2, 4095, 1 << 20, 1<<62 + 12345} {
		if n := WordNumber(state, Word(state, i)); n != uint64(i) {
			t.Errorf("word %d has number %d", i, n)
		}
	}
}
