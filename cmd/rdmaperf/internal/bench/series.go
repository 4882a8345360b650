package bench

import (
	"math/bits"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// A series shows how a window went: operations and latencies of every interval.
// All its memory is there before the window; a sample costs one comparison and two
// additions. Intervals count the operations that ended in them. Percentiles are
// right within 1.6 %, the maximum is exact.
type series struct {
	every int64 // ns
	slots []seriesSlot

	at   int   // current slot
	next int64 // its end
}

type seriesSlot struct {
	ops     int64
	max     int64
	buckets [seriesBuckets]uint32
}

const (
	// seriesBuckets covers 36 bits, 68 s, with 32 buckets for each doubling.
	seriesBuckets = 1024
	seriesMaxNs   = 1<<36 - 1

	// MaxIntervals bounds a series; a slot is 4 KiB.
	MaxIntervals = 3600
)

// newSeries has room for the window, and for the tail behind it, which counts in
// the last slot.
func newSeries(every, window time.Duration) *series {
	s := &series{every: int64(every), slots: make([]seriesSlot, (window+every-1)/every)}
	clear(s.slots) // the pages have to be there before the window
	return s
}

// start begins a window at t.
func (s *series) start(t int64) {
	s.at, s.next = 0, t+s.every
}

// slot is the one of time t, which never runs backwards.
func (s *series) slot(t int64) *seriesSlot {
	for t >= s.next && s.at < len(s.slots)-1 {
		s.at++
		s.next += s.every
	}
	return &s.slots[s.at]
}

// sample counts an operation that ended at t.
func (s *series) sample(t, ns int64) {
	slot := s.slot(t)
	slot.ops++
	slot.max = max(slot.max, ns)
	slot.buckets[seriesBucket(ns)]++
}

// count adds operations without latencies.
func (s *series) count(t, n int64) { s.slot(t).ops += n }

// seriesBucket is exact below 64.
func seriesBucket(ns int64) int {
	v := uint64(min(max(ns, 0), seriesMaxNs))
	if v < 64 {
		return int(v)
	}
	shift := bits.Len64(v) - 6
	return shift*32 + int(v>>shift)
}

// bucketNs is the middle of a bucket.
func bucketNs(i int) float64 {
	if i < 64 {
		return float64(i)
	}
	shift := i/32 - 1
	low := int64(i-shift*32) << shift
	return float64(low) + float64(int64(1)<<shift-1)/2
}

// merge adds another worker's series of the same window.
func (s *series) merge(o *series) {
	for i := range s.slots {
		a, b := &s.slots[i], &o.slots[i]
		a.ops += b.ops
		a.max = max(a.max, b.max)
		for k := range a.buckets {
			a.buckets[k] += b.buckets[k]
		}
	}
}

// quantile is the nearest-rank value of a slot, never above its maximum.
func (s *seriesSlot) quantile(permille int64) float64 {
	var total, seen int64
	for _, n := range s.buckets {
		total += int64(n)
	}
	rank := (total*permille + 999) / 1000
	for i, n := range s.buckets {
		if seen += int64(n); n > 0 && seen >= rank {
			return min(bucketNs(i), float64(s.max))
		}
	}
	return 0
}

// report is the series as the document has it.
func (s *series) report() *reports.Series {
	r := &reports.Series{IntervalNs: s.every}
	for i := range s.slots {
		slot := &s.slots[i]
		r.Points = append(r.Points, reports.SeriesPoint{OffsetNs: int64(i) * s.every, Operations: slot.ops,
			P50: slot.quantile(500), P99: slot.quantile(990), Max: float64(slot.max)})
	}
	return r
}
