package reports

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

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

// The reference is the plain textbook computation over all samples.
func TestNormalDistributionIsReportedAsItIs(t *testing.T) {
	samples := normal(100_000, 2300, 250)
	l := record(samples...).Snapshot()

	n := float64(len(samples))
	var sum, squares float64
	for _, ns := range samples {
		sum += float64(ns)
	}
	for _, ns := range samples {
		squares += (float64(ns) - sum/n) * (float64(ns) - sum/n)
	}
	slices.Sort(samples)
	if l.Count != 100_000 || l.Min != float64(samples[0]) || l.Max != float64(samples[len(samples)-1]) {
		t.Errorf("count, min, max = %v, %v, %v, want 100000, %v, %v", l.Count, l.Min, l.Max, samples[0],
			samples[len(samples)-1])
	}
	near(t, "mean", l.Mean, sum/n, 1e-12)
	near(t, "stddev", l.StdDev, math.Sqrt(squares/n), 1e-9)
	near(t, "stddev of the source", l.StdDev, 250, 0.01)
	for _, p := range l.Percentiles() {
		rank := int(math.Round(p.Percent * n / 100))
		near(t, p.Name, p.Ns, float64(samples[rank-1]), 0.001)
	}
	if want := []string{"p99999"}; !slices.Equal(l.TooFew, want) {
		t.Errorf("too_few = %v, want %v", l.TooFew, want)
	}
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

func TestStdDevSurvivesALargeMean(t *testing.T) {
	// In float64 the squares of 10^10 ns leave nothing of a deviation of 1 ns.
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
	h, err := l.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	if !h.Equals(r.Histogram()) {
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
	r, other := NewRecorder(), record(1, 2)
	r.RecordN(1, math.MaxInt64)
	r.RecordN(5, 1)
	r.Merge(other)
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

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder()
	var samples [1024]int64
	copy(samples[:], normal(len(samples), 4000, 900))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		r.Record(samples[i&1023])
		i++
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := record(normal(100_000, 4000, 900)...)
	b.ReportAllocs()
	for b.Loop() {
		if r.Snapshot().Count == 0 {
			b.Fatal("empty")
		}
	}
}

// Percentiles are held against the sorted sample for distributions with tails as
// calls have them. A percentile function that takes 0..1 for 0..100 gives a "99th"
// below the mean, which no sample with a tail to the right has: published figures
// have been wrong that way.
func TestPercentilesOfSkewedSamplesAreThoseOfTheSortedSample(t *testing.T) {
	rnd := rand.New(rand.NewPCG(16, 2024))
	for name, draw := range map[string]func() float64{
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
		sum := 0.0
		for i := range samples {
			samples[i] = int64(draw())
			sum += float64(samples[i])
		}
		l := record(samples...).Snapshot()
		slices.Sort(samples)
		mean := sum / float64(len(samples))
		near(t, name+" mean", l.Mean, mean, 1e-9)
		last := 0.0
		for _, p := range l.Percentiles() {
			rank := max(int(math.Ceil(p.Percent*float64(len(samples))/100-1e-6)), 1) // 99.9 is not exact
			near(t, name+" "+p.Name, p.Ns, float64(samples[rank-1]), 0.001)
			if p.Ns < last {
				t.Errorf("%s: %s is %v, below %v of the percentile before", name, p.Name, p.Ns, last)
			}
			last = p.Ns
		}
		if l.P99 < l.Mean || l.Mean < l.P50 {
			t.Errorf("%s: p50 %v, mean %v, p99 %v: want them to rise", name, l.P50, l.Mean, l.P99)
		}
	}
}
