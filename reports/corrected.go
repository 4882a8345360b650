package reports

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

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
