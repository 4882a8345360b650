package bench

import (
	"math"
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

// The gaps of a Poisson process are exponential: mean and standard deviation are
// the interval, and a share of 1/e is longer than it.
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

func TestPacerAllocatesNothing(t *testing.T) {
	for _, poisson := range []bool{false, true} {
		p := NewPacer(10, poisson, 1)
		if n := testing.AllocsPerRun(1000, func() { p.Next(); _ = p.Due() }); n != 0 {
			t.Errorf("poisson %v: %v allocations", poisson, n)
		}
	}
}
