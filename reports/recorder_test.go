package reports

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tester is testing.TB or rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func noError(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(tester) T {
	return func(t tester) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// near fails unless got is within the given share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s = %v, want %v within %v %%", what, got, want, share*100)
	}
}

func record(samples ...int64) *Recorder {
	r := NewRecorder()
	for _, ns := range samples {
		r.Record(ns)
	}
	return r
}

// normal returns n samples around mean, seeded, in recording order.
func normal(n int, mean, deviation float64) []int64 {
	rnd := rand.New(rand.NewPCG(2017, 19))
	samples := make([]int64, n)
	for i := range samples {
		samples[i] = int64(max(1, mean+deviation*rnd.NormFloat64()))
	}
	return samples
}

// perftest drops the two largest samples, so that this stall leaves no trace.
func TestOneStallIsVisible(t *testing.T) {
	r := NewRecorder()
	r.RecordN(2300, 999)
	r.Record(5_000_000)

	raw := r.Snapshot()
	if raw.Max != 5_000_000 {
		t.Errorf("max = %v, want the stall, 5000000", raw.Max)
	}
	near(t, "mean", raw.Mean, (999*2300+5_000_000)/1000.0, 1e-12)
	near(t, "stddev", raw.StdDev, 157_962.11, 1e-7) // √(0.999·0.001)·4997700
	near(t, "raw p99.9, a closed loop that sent nothing during the stall", raw.P999, 2300, 0.001)

	corrected := r.Corrected(2300)
	if corrected.Max != 5_000_000 || corrected.Min != 2300 {
		t.Errorf("corrected min, max = %v, %v, want 2300, 5000000", corrected.Min, corrected.Max)
	}
	if want := int64(1000 + 5_000_000/2300 - 1); corrected.Count != want {
		t.Errorf("corrected count = %d, want %d", corrected.Count, want)
	}
	near(t, "corrected p99.9", corrected.P999, 4_993_000, 0.001)
	if corrected.ExpectedIntervalNs != 2300 || raw.ExpectedIntervalNs != 0 {
		t.Errorf("expected interval = %d and %d raw, want 2300 and 0", corrected.ExpectedIntervalNs,
			raw.ExpectedIntervalNs)
	}
}

// In float64 the squares of 10^10 ns leave nothing of a deviation of 1 ns.
func TestStdDevSurvivesALargeMean(t *testing.T) {
	r := NewRecorder()
	r.RecordN(10_000_000_000, 1_000_000)
	r.RecordN(10_000_000_002, 1_000_000)
	if l := r.Snapshot(); l.Mean != 10_000_000_001 || l.StdDev != 1 {
		t.Errorf("mean, stddev = %v, %v, want 10000000001, 1", l.Mean, l.StdDev)
	}
}

func TestOutOfRangeIsClampedAndCounted(t *testing.T) {
	l := record(-7, 2000, HighestNs, 2*HighestNs, math.MaxInt64).Snapshot()
	if l.Count != 5 || l.Clamped != 3 {
		t.Errorf("count, clamped = %d, %d, want 5, 3", l.Count, l.Clamped)
	}
	if l.Min != 0 || l.Max != momentCapNs {
		t.Errorf("min, max = %v, %v, want 0, %v", l.Min, l.Max, int64(momentCapNs))
	}
	near(t, "p50", l.P50, HighestNs, 0.001)
	near(t, "mean", l.Mean, (2000+3*HighestNs+float64(momentCapNs))/5, 1e-12)
}

// A histogram answers with the end of a bucket; nothing may lie above the maximum.
func TestPercentilesStayBetweenMinAndMax(t *testing.T) {
	for _, ns := range []int64{2300, 4097, HighestNs, 3 * HighestNs} {
		l := record(ns).Snapshot()
		for _, p := range l.Percentiles() {
			if p.Ns != float64(ns) {
				t.Errorf("%s of the single sample %d = %v", p.Name, ns, p.Ns)
			}
		}
	}
}

func TestEmptyRecorder(t *testing.T) {
	r := record(1, 2, 3)
	r.Reset()
	for name, l := range map[string]Latency{"new": NewRecorder().Snapshot(), "reset": r.Snapshot(),
		"corrected": r.Corrected(10)} {
		if l.Count != 0 || l.Min != 0 || l.Max != 0 || l.Mean != 0 || l.StdDev != 0 || l.P9999 != 0 {
			t.Errorf("%s: %+v, want zeroes", name, l)
		}
		if len(l.TooFew) != len(PercentileTable) {
			t.Errorf("%s: too_few = %v, want every percentile", name, l.TooFew)
		}
	}
}

func TestTooFewFollowsTheRule(t *testing.T) {
	for _, row := range PercentileTable {
		if want := int64(math.Round(10 / (1 - row.Percent/100))); row.need != want {
			t.Errorf("%s needs %d samples, want 10/(1-q) = %d", row.name, row.need, want)
		}
		for count, marked := range map[int64]bool{row.need - 1: true, row.need: false} {
			r := NewRecorder()
			r.RecordN(1000, count)
			if l := r.Snapshot(); slices.Contains(l.TooFew, row.name) != marked {
				t.Errorf("%s of %d samples: marked %v, want %v", row.name, count, !marked, marked)
			}
		}
	}
}

func TestHistogramTravelsInTheDocument(t *testing.T) {
	r := record(normal(5000, 4000, 900)...)
	l := r.Snapshot()
	h := must(l.Histogram())(t)
	if !h.Equals(&r.hist) {
		t.Error("the decoded histogram differs from the recorded one")
	}
	for _, hdr := range []string{"", "no base64!", "AAAA"} {
		if _, err := (&Latency{HDR: hdr}).Histogram(); err == nil {
			t.Errorf("Histogram of %q: no error", hdr)
		}
	}
}

// samplesGen covers the exact range, the range of buckets and both outsides.
var samplesGen = rapid.SliceOfN(rapid.OneOf(
	rapid.Int64Range(0, 5000), rapid.Int64Range(0, HighestNs), rapid.Int64Range(-10, 2*HighestNs)), 0, 60)

func TestMergeEqualsRecordingAll(t *testing.T) {
	all, merged := NewRecorder(), NewRecorder()
	parts := []*Recorder{NewRecorder(), NewRecorder(), NewRecorder()}
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range append(parts, all, merged) {
			r.Reset()
		}
		for i, ns := range samplesGen.Draw(t, "samples") {
			all.Record(ns)
			parts[i%len(parts)].Record(ns)
		}
		for _, p := range parts {
			merged.Merge(p)
		}
		if diff := cmp.Diff(all.Snapshot(), merged.Snapshot()); diff != "" {
			t.Errorf("merged differs from recorded (-want +got):\n%s", diff)
		}
	})
}

func TestRecordNEqualsRecordingNTimes(t *testing.T) {
	one, many := NewRecorder(), NewRecorder()
	rapid.Check(t, func(t *rapid.T) {
		one.Reset()
		many.Reset()
		for _, ns := range samplesGen.Draw(t, "samples") {
			n := rapid.Int64Range(-1, 5).Draw(t, "n")
			many.RecordN(ns, n)
			for range n {
				one.Record(ns)
			}
		}
		if diff := cmp.Diff(one.Snapshot(), many.Snapshot()); diff != "" {
			t.Errorf("RecordN differs from Record (-want +got):\n%s", diff)
		}
	})
}

func TestCountCannotOverflow(t *testing.T) {
	r := NewRecorder()
	r.RecordN(1, math.MaxInt64)
	r.RecordN(5, 1)
	r.Merge(record(1, 2))
	if l := r.Snapshot(); l.Count != math.MaxInt64 || l.Max != 1 || l.Mean != 1 {
		t.Errorf("count, max, mean = %v, %v, %v, want what was there before", l.Count, l.Max, l.Mean)
	}
}

func TestRecordAllocatesNothing(t *testing.T) {
	r, other := NewRecorder(), record(1, 1e6)
	ns := int64(2000)
	if n := testing.AllocsPerRun(1000, func() {
		ns += 37
		r.Record(ns)
		r.Record(-1)
		r.Record(2 * HighestNs)
		r.RecordN(ns, 3)
	}); n != 0 {
		t.Errorf("Record allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(3, func() {
		r.Merge(other)
		r.Reset()
	}); n != 0 {
		t.Errorf("Merge and Reset allocate %v times, want 0", n)
	}
}

// A percentile function that takes 0..1 for 0..100 gives a "99th" below the mean.
func TestFiguresAreThoseOfTheSortedSample(t *testing.T) {
	rnd := rand.New(rand.NewPCG(16, 2024))
	for name, draw := range map[string]func() float64{
		"normal":      func() float64 { return max(1, 2300+250*rnd.NormFloat64()) },
		"exponential": func() float64 { return 8000 + 4000*rnd.ExpFloat64() },
		"log-normal":  func() float64 { return 9000 * math.Exp(rnd.NormFloat64()/2) },
		"two modes": func() float64 {
			if rnd.IntN(20) == 0 {
				return 60000 + 5000*rnd.Float64()
			}
			return 8000 + 500*rnd.Float64()
		},
		"pareto": func() float64 { return 7000 / math.Pow(1-rnd.Float64(), 1/2.5) },
	} {
		samples := make([]int64, 200_000)
		var sum, squares, last float64
		for i := range samples {
			samples[i] = int64(draw())
			sum += float64(samples[i])
		}
		mean := sum / float64(len(samples))
		for _, ns := range samples {
			squares += (float64(ns) - mean) * (float64(ns) - mean)
		}
		l := record(samples...).Snapshot()
		slices.Sort(samples)
		if l.Count != int64(len(samples)) || l.Min != float64(samples[0]) || l.Max != float64(samples[len(samples)-1]) ||
			!slices.Equal(l.TooFew, []string{"p99999"}) {
			t.Errorf("%s: count %d, min %v, max %v, too few %v", name, l.Count, l.Min, l.Max, l.TooFew)
		}
		near(t, name+" mean", l.Mean, mean, 1e-12)
		near(t, name+" stddev", l.StdDev, math.Sqrt(squares/float64(len(samples))), 1e-9)
		for _, p := range l.Percentiles() {
			rank := max(int(math.Ceil(p.Percent*float64(len(samples))/100-1e-6)), 1) // 99.9 is not exact
			near(t, name+" "+p.Name, p.Ns, float64(samples[rank-1]), 0.001)
			if p.Ns < last {
				t.Errorf("%s: %s is %v, below %v of the percentile before", name, p.Name, p.Ns, last)
			}
			last = p.Ns
		}
		if l.P99 < l.Mean || l.Mean < l.P50 && name != "normal" {
			t.Errorf("%s: p50 %v, mean %v, p99 %v: want them to rise", name, l.P50, l.Mean, l.P99)
		}
	}
}

// The rank is ceil(q·n) in exact arithmetic.
func TestRankIsTheCeiling(t *testing.T) {
	for _, p := range []struct {
		percent  float64
		num, den int64
	}{{50, 1, 2}, {90, 9, 10}, {99, 99, 100}, {99.9, 999, 1000}, {99.99, 9999, 10000}, {99.999, 99999, 100000}} {
		for n := int64(1); n <= 1_000_000; n = n*21/20 + 1 {
			for _, m := range []int64{n, n / 1000 * 1000} {
				if m == 0 {
					continue
				}
				x := new(big.Int).Mul(big.NewInt(p.num), big.NewInt(m))
				x.Add(x, big.NewInt(p.den-1)).Div(x, big.NewInt(p.den))
				if got := rank(p.percent, m); got != max(x.Int64(), 1) {
					t.Fatalf("rank of %v %% of %d is %d, want %d", p.percent, m, got, x.Int64())
				}
			}
		}
	}
}

// Percentiles of few samples are the samples themselves, by the sorted list.
func TestPercentilesAreSamples(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	percents := []float64{50, 90, 99, 99.9, 99.99, 99.999}
	for range 300 {
		h := hdrhistogram.New(LowestNs, HighestNs, Digits)
		samples := make([]int64, 1+r.IntN(3000))
		for i := range samples {
			samples[i] = r.Int64N(2000) // each has a bucket of its own
			noError(t, h.RecordValue(samples[i]))
		}
		slices.Sort(samples)
		for i, v := range ValuesAt(h, percents) {
			if want := samples[rank(percents[i], int64(len(samples)))-1]; v != want {
				t.Fatalf("%v %% of %d samples is %d, want %d", percents[i], len(samples), v, want)
			}
		}
	}
	if got := ValuesAt(hdrhistogram.New(LowestNs, HighestNs, Digits), percents); !slices.Equal(got,
		make([]int64, len(percents))) {
		t.Errorf("no samples: %v", got)
	}
}

// The reference is the library's own correction. Below 2048 ns, buckets hold one value.
func TestCorrectedEqualsHdrHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int64Range(0, 2047), 1, 50).Draw(t, "samples")
		interval := rapid.Int64Range(1, 2500).Draw(t, "interval")
		want := hdrhistogram.New(LowestNs, HighestNs, Digits)
		for _, ns := range samples {
			noError(t, want.RecordCorrectedValue(ns, interval))
		}
		l := record(samples...).Corrected(interval)
		got := must(l.Histogram())(t)
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
			noError(t, one.RecordValues(v-k*interval, 3))
		}
		got := hdrhistogram.New(LowestNs, HighestNs, Digits)
		countMissed(got, record(v).hist.Distribution(), v, interval, steps, 3)
		if !got.Equals(one) {
			t.Errorf("v %d interval %d: %d inserted, want %d", v, interval, got.TotalCount(), one.TotalCount())
		}
	})
}

// A minute against a nanosecond is 6·10^10 missed samples: this test would not end if they were inserted one by one.
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
