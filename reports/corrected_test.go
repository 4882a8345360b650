package reports

import (
	"math"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

// The reference records every sample with the library's own correction. Samples
// stay below 2048 ns, where buckets hold one value and nothing is rounded.
func TestCorrectedEqualsHdrHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int64Range(0, 2047), 1, 50).Draw(t, "samples")
		interval := rapid.Int64Range(1, 2500).Draw(t, "interval")
		want := hdrhistogram.New(LowestNs, HighestNs, Digits)
		for _, ns := range samples {
			if err := want.RecordCorrectedValue(ns, interval); err != nil {
				t.Fatal(err)
			}
		}
		l := record(samples...).Corrected(interval)
		got, err := l.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equals(want) {
			t.Errorf("corrected histogram differs from HdrHistogram's: count %d, want %d", got.TotalCount(),
				want.TotalCount())
		}
		for what, v := range map[string][2]float64{
			"min": {l.Min, float64(want.Min())}, "max": {l.Max, float64(want.Max())},
			"mean": {l.Mean, want.Mean()}, "stddev": {l.StdDev, want.StdDev()},
		} {
			if math.Abs(v[0]-v[1]) > 1e-6 {
				t.Errorf("%s = %v, want %v", what, v[0], v[1])
			}
		}
	})
}

// Counting per bucket must give the same as inserting one by one.
func TestCountingMissedEqualsInserting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(2, 40_000_000).Draw(t, "v")
		interval := rapid.Int64Range(max(1, v/100_000), v/2+1).Draw(t, "interval")
		steps := v/interval - 1
		one := hdrhistogram.New(LowestNs, HighestNs, Digits)
		for k := int64(1); k <= steps; k++ {
			if err := one.RecordValues(v-k*interval, 3); err != nil {
				t.Fatal(err)
			}
		}
		got := hdrhistogram.New(LowestNs, HighestNs, Digits)
		countMissed(got, record(v).hist.Distribution(), v, interval, steps, 3)
		if !got.Equals(one) {
			t.Errorf("v %d interval %d: %d inserted, want %d", v, interval, got.TotalCount(), one.TotalCount())
		}
	})
}

// A minute against a nanosecond is 6·10^10 missed samples: this test would not
// end if they were inserted one by one.
func TestCorrectionOfAnAbsurdInterval(t *testing.T) {
	l := record(2300, HighestNs).Corrected(1)
	near(t, "count", float64(l.Count), HighestNs, 0.001)
	near(t, "p50", l.P50, HighestNs/2, 0.002)
	near(t, "mean", l.Mean, HighestNs/2, 0.002)
	near(t, "stddev", l.StdDev, HighestNs/math.Sqrt(12), 0.002)
}

func TestNothingMissedNothingChanged(t *testing.T) {
	r := record(normal(2000, 2300, 250)...)
	raw := r.Snapshot()
	for _, interval := range []int64{-1, 0, 4000} {
		if l := r.Corrected(interval); l.Count != raw.Count || l.Mean != raw.Mean || l.StdDev != raw.StdDev ||
			l.P999 != raw.P999 {
			t.Errorf("Corrected(%d) = %+v, want the raw figures %+v", interval, l, raw)
		}
	}
}

// The largest sum of samples that is corrected, and one above it.
func TestCorrectionEndsWhereCountsCouldOverflow(t *testing.T) {
	for _, c := range []struct {
		sum, count uint64
	}{{math.MaxInt64 / 2, 3}, {math.MaxInt64/2 + 1, 1}} {
		r := record(3000)
		r.sum.lo = c.sum
		if l := r.Corrected(1000); uint64(l.Count) != c.count {
			t.Errorf("a sum of %d: %d samples, want %d", c.sum, l.Count, c.count)
		}
	}
}
