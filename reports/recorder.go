package reports

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/cpu"
)

const (
	// LowestNs and Digits give exact values up to 2047 ns and at most 0.1 % above.
	LowestNs = 1
	Digits   = 3

	// HighestNs is the longest latency the histogram tells apart, 60 s. Every doubling takes 8 KiB per recorder.
	HighestNs = 60_000_000_000

	// momentCapNs, about 39 hours, keeps the sums of 2^33 broken samples from overflowing.
	momentCapNs = 1 << 47
)

// Recorder collects the latencies of one worker, whose goroutine owns it. It allocates only in NewRecorder.
type Recorder struct {
	// The pads keep counters of other recorders off these cache lines; the histogram is a value for the same reason.
	_ cpu.CacheLinePad

	hist     hdrhistogram.Histogram
	min, max int64
	sum      uint128
	squares  uint128
	clamped  int64

	unfinished, longest int64 // lower bounds, and the longest of them

	_ cpu.CacheLinePad
}

// NewRecorder returns an empty recorder of about 220 KiB.
func NewRecorder() *Recorder {
	r := &Recorder{hist: *hdrhistogram.New(LowestNs, HighestNs, Digits)}
	r.Reset()
	return r
}

// Record adds one latency in nanoseconds. One outside 0..60 s is counted at the nearer end of the histogram and as
// clamped; above it, max, mean and stddev use the value itself.
func (r *Recorder) Record(ns int64) {
	v := ns
	// The check comes first because the histogram would build an error with fmt.
	if uint64(ns) > HighestNs {
		v, ns = r.clamp(ns, 1)
	}
	_ = r.hist.RecordValue(v) // in range by the check above
	r.min = min(r.min, ns)
	r.max = max(r.max, ns)
	u := uint64(ns)
	r.sum.add(0, u)
	r.squares.add(bits.Mul64(u, u))
}

// RecordN adds n samples of the same latency; none when n is below one or would lift Count above 2^63−1. The sums stay
// exact while n·ns² is below 2^128.
func (r *Recorder) RecordN(ns, n int64) {
	if n < 1 || n > math.MaxInt64-r.hist.TotalCount() {
		return
	}
	v := ns
	if uint64(ns) > HighestNs {
		v, ns = r.clamp(ns, n)
	}
	_ = r.hist.RecordValues(v, n) // value and total are in range
	r.min = min(r.min, ns)
	r.max = max(r.max, ns)
	u := uint64(ns)
	r.sum.add(bits.Mul64(u, uint64(n)))
	sqHi, sqLo := bits.Mul64(u, u)
	hi, lo := bits.Mul64(sqLo, uint64(n))
	r.squares.add(hi+sqHi*uint64(n), lo)
}

// AtLeast adds n samples of which only a lower bound is known: the time an operation has waited by the window's end.
func (r *Recorder) AtLeast(ns, n int64) {
	before := r.Count()
	r.RecordN(ns, n)
	if added := r.Count() - before; added > 0 {
		r.unfinished += added
		r.longest = max(r.longest, ns)
	}
}

// clamp counts n samples outside the range and returns their values for histogram and sums.
func (r *Recorder) clamp(ns, n int64) (inHistogram, inSums int64) {
	r.clamped += n
	if ns < 0 { // time does not run backwards: the clock or the caller is wrong
		return 0, 0
	}
	return HighestNs, min(ns, momentCapNs)
}

// Count returns the number of samples since the last Reset.
func (r *Recorder) Count() int64 { return r.hist.TotalCount() }

// Reset forgets all samples, for instance those of the warm-up.
func (r *Recorder) Reset() {
	r.hist.Reset()
	r.min, r.max = math.MaxInt64, 0
	r.sum, r.squares = uint128{}, uint128{}
	r.clamped, r.unfinished, r.longest = 0, 0, 0
}

// Merge adds the samples of other, a different recorder, as if r had recorded them. It adds nothing when that would
// lift Count above 2^63−1.
func (r *Recorder) Merge(other *Recorder) {
	if other.Count() > math.MaxInt64-r.Count() {
		return
	}
	r.hist.Merge(&other.hist) // same range, and the total fits: nothing is dropped
	r.min = min(r.min, other.min)
	r.max = max(r.max, other.max)
	r.sum.add(other.sum.hi, other.sum.lo)
	r.squares.add(other.squares.hi, other.squares.lo)
	r.clamped += other.clamped
	r.unfinished += other.unfinished
	r.longest = max(r.longest, other.longest)
}

// Snapshot summarises what was recorded. It allocates and takes about a millisecond: call it outside the window.
func (r *Recorder) Snapshot() Latency {
	if r.Count() == 0 {
		return Summarise(&r.hist, 0, 0)
	}
	l := Summarise(&r.hist, r.min, r.max)
	l.Mean, l.StdDev = r.meanAndDeviation()
	l.Clamped = r.clamped
	l.bound(r.unfinished, r.longest)
	return l
}

// Integers avoid the cancellation that makes the float form useless when the deviation is small beside the mean.
func (r *Recorder) meanAndDeviation() (mean, deviation float64) {
	n := big.NewInt(r.Count())
	sum := r.sum.big()
	mean, _ = new(big.Rat).SetFrac(sum, n).Float64()

	// n²·variance = n·Σx² − (Σx)²
	scaled := new(big.Int).Mul(n, r.squares.big())
	scaled.Sub(scaled, new(big.Int).Mul(sum, sum))
	variance, _ := new(big.Rat).SetFrac(scaled, new(big.Int).Mul(n, n)).Float64()
	return mean, math.Sqrt(variance)
}

// uint128 is an unsigned sum that nanoseconds and their squares do not overflow.
type uint128 struct{ hi, lo uint64 }

func (a *uint128) add(hi, lo uint64) {
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi, _ = bits.Add64(a.hi, hi, carry)
}

func (a uint128) big() *big.Int {
	b := new(big.Int).SetUint64(a.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(a.lo))
}

func (a uint128) float() float64 { return math.Ldexp(float64(a.hi), 64) + float64(a.lo) }

// Corrected undoes coordinated omission, as HdrHistogram's copyCorrectedForCoordinatedOmission does: a closed loop that
// stood still for v ns also missed requests that would have waited v−i, v−2i … down to the interval i, in ns. An
// interval below one gives Snapshot, and so do samples that sum to more than 146 years, where counts could overflow.
func (r *Recorder) Corrected(expectedIntervalNs int64) Latency {
	interval := expectedIntervalNs
	if interval < 1 || r.Count() == 0 || r.sum.hi != 0 || r.sum.lo > math.MaxInt64/2 {
		return r.Snapshot()
	}
	out := hdrhistogram.New(LowestNs, HighestNs, Digits)
	bars := r.hist.Distribution()
	sum, squares := r.sum.float(), r.squares.float()
	lowest := r.min
	for _, bar := range bars {
		if bar.Count == 0 {
			continue
		}
		v := min(bar.To, r.max)
		_ = out.RecordValues(v, bar.Count)
		steps := v/interval - 1
		if steps < 1 {
			continue
		}
		insertMissed(out, bars, v, interval, steps, bar.Count)
		lowest = min(lowest, v-steps*interval)

		// Σ(v−ki) and Σ(v−ki)² for k = 1..steps, in closed form.
		c, x, i, k := float64(bar.Count), float64(v), float64(interval), float64(steps)
		sum += c * (k*x - i*k*(k+1)/2)
		squares += c * (k*x*x - x*i*k*(k+1) + i*i*k*(k+1)*(2*k+1)/6)
	}
	if out.TotalCount() == r.Count() {
		l := r.Snapshot()
		l.ExpectedIntervalNs = interval
		return l
	}
	l := Summarise(out, lowest, r.max)
	n := float64(l.Count)
	l.Mean = sum / n
	l.StdDev = math.Sqrt(max(0, squares/n-l.Mean*l.Mean))
	l.Clamped = r.clamped
	l.bound(r.unfinished, r.longest)
	l.ExpectedIntervalNs = interval
	return l
}

// insertMissed records count samples of each v−k·interval, k = 1..steps. Many are counted per bucket: a stall of a
// minute against a nanosecond is 6·10^10 of them.
func insertMissed(out *hdrhistogram.Histogram, bars []hdrhistogram.Bar, v, interval, steps, count int64) {
	if steps > int64(len(bars)) {
		countMissed(out, bars, v, interval, steps, count)
		return
	}
	for missed := v - interval; missed >= interval; missed -= interval {
		_ = out.RecordValues(missed, count)
	}
}

// countMissed does the same from the number of missed values in each bucket.
func countMissed(out *hdrhistogram.Histogram, bars []hdrhistogram.Bar, v, interval, steps, count int64) {
	below := int64(0) // missed values under the current bucket
	for _, bar := range bars {
		if bar.From >= v {
			return
		}
		first := max((v-min(bar.To, v)+interval-1)/interval, 1) // smallest k with v−k·interval in or under the bucket
		upTo := max(steps-first+1, 0)
		if upTo > below {
			_ = out.RecordValues(bar.From, (upTo-below)*count)
			below = upTo
		}
	}
}
