package reports

import (
	"math"
	"testing"
)

// The longest latency is inside the range, and so is none at all.
func TestTheEndsOfTheRangeAreNotClamped(t *testing.T) {
	r := record(0, HighestNs)
	r.RecordN(HighestNs, 2)
	if l := r.Snapshot(); l.Clamped != 0 || l.Count != 4 || l.Min != 0 || l.Max != HighestNs {
		t.Errorf("%+v", l)
	}
	r.RecordN(HighestNs+1, 3)
	if l := r.Snapshot(); l.Clamped != 3 || l.Count != 7 {
		t.Errorf("one above: %+v", l)
	}
}

// What adds no sample is no lower bound either.
func TestNoLowerBoundOfNoSample(t *testing.T) {
	r := record(5)
	r.AtLeast(9, 0)
	if l := r.Snapshot(); l.Unfinished != 0 || l.Count != 1 || r.longest != 0 {
		t.Errorf("%+v, longest %d", l, r.longest)
	}
}

// Two recorders that have as many samples as can be counted are merged, and not with one more.
func TestMergeOfAsManyAsCanBeCounted(t *testing.T) {
	for n, want := range map[int64]int64{math.MaxInt64 - 5: math.MaxInt64, math.MaxInt64 - 4: 5} {
		r, other := NewRecorder(), NewRecorder()
		r.RecordN(1, 5)
		other.RecordN(1, n)
		if r.Merge(other); r.Count() != want {
			t.Errorf("5 and %d are %d, want %d", n, r.Count(), want)
		}
	}
}

func TestPercentilesAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{"p50": true, "p5": true, "loaded.p99": true, "p": false, "loaded.p": false,
		"peak": false, "mean": false, "p9x": false, "": false} {
		if isPercentile(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// Units change where a thousand of them, or 1024, are one of the next.
func TestQuantitiesAtTheirUnits(t *testing.T) {
	for _, c := range []struct {
		q    Quantity
		v    float64
		want string
	}{
		{QuantityTime, 999, "999ns"}, {QuantityTime, 1000, "1.000us"}, {QuantityTime, 1e6, "1.000ms"},
		{QuantityTime, -1e9, "-1.000s"},
		{QuantityRate, 999, "999.000/s"}, {QuantityRate, 1000, "1.000k/s"}, {QuantityBytes, 1024, "1.000KiB/s"},
		{QuantityBytes, 1023, "1023.000B/s"},
	} {
		if got := FormatQuantity(c.q, c.v); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
}

// Of equals, neither is further beyond the limit: the first stays the worst.
func TestEqualsAreNotWorse(t *testing.T) {
	for _, above := range []bool{true, false} {
		th := Threshold{more: above}
		if th.worse(5, 5) || th.worse(6, 5) != above || th.worse(4, 5) == above || !th.worse(math.NaN(), 5) {
			t.Errorf("above %v", above)
		}
	}
}
