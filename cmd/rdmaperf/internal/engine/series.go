package engine

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Series has the operations and latencies of every interval of a window, by where they ended. Its memory is there
// before the window. Percentiles are right within 1.6 %, the maximum is exact.
type Series struct {
	every    int64 // ns
	slots    []seriesSlot
	at       int          // current slot
	next     int64        // its end
	Ring     bool         // forgets: the slots are used again, and there is no report
	finished atomic.Int64 // slots that were finished since the start, for [Live]
}

type seriesSlot struct {
	ops     int64
	max     int64
	buckets [seriesBuckets]uint32
}

const (
	seriesBuckets = 1024 // covers 36 bits, 68 s, with 32 buckets for each doubling
	seriesMaxNs   = 1<<36 - 1
	MaxIntervals  = 3600 // bounds a series; a slot is 4 KiB
)

// NewSeries has room for the window, and for the tail behind it, which counts in the last slot.
func NewSeries(every, window time.Duration) *Series {
	s := &Series{every: int64(every), slots: make([]seriesSlot, (window+every-1)/every)}
	clear(s.slots) // the pages have to be there before the window
	return s
}

// Start begins a window at t.
func (s *Series) Start(t int64) {
	s.at, s.next = 0, t+s.every
	s.finished.Store(0)
}

// slot is the one of time t, which never runs backwards.
func (s *Series) slot(t int64) *seriesSlot {
	for t >= s.next && (s.Ring || s.at < len(s.slots)-1) {
		s.at++
		s.next += s.every
		if s.at == len(s.slots) {
			s.at = 0
		}
		if s.Ring {
			s.slots[s.at] = seriesSlot{}
		}
		s.finished.Add(1)
	}
	return &s.slots[s.at]
}

// Sample counts an operation that ended at t.
func (s *Series) Sample(t, ns int64) {
	slot := s.slot(t)
	slot.ops++
	slot.max = max(slot.max, ns)
	slot.buckets[seriesBucket(ns)]++
}

func (s *Series) count(t, n int64) { s.slot(t).ops += n }

// seriesBucket is exact below 64.
func seriesBucket(ns int64) int {
	v := uint64(min(max(ns, 0), seriesMaxNs))
	if v < 64 {
		return int(v)
	}
	shift := bits.Len64(v) - 6
	return shift*32 + int(v>>shift)
}

func bucketNs(i int) float64 {
	if i < 64 {
		return float64(i)
	}
	shift := i/32 - 1
	low := int64(i-shift*32) << shift
	return float64(low) + float64(int64(1)<<shift-1)/2
}

// Merge adds another worker's series of the same window.
func (s *Series) Merge(o *Series) {
	for i := range s.slots {
		s.slots[i].add(&o.slots[i])
	}
}

func (s *seriesSlot) add(o *seriesSlot) {
	s.ops += o.ops
	s.max = max(s.max, o.max)
	for k := range s.buckets {
		s.buckets[k] += o.buckets[k]
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

func (s *Series) report() *reports.Series {
	r := &reports.Series{IntervalNs: s.every}
	for i := range s.slots {
		slot := &s.slots[i]
		r.Points = append(r.Points, reports.SeriesPoint{OffsetNs: int64(i) * s.every, Operations: slot.ops,
			P50: slot.quantile(500), P99: slot.quantile(990), Max: float64(slot.max)})
	}
	return r
}

// Live shows a window while it is measured. A finished slot of a series is announced by one store, and not written to
// again before liveSlots more are. Safe for concurrent use.
type Live struct {
	every time.Duration

	mu    sync.Mutex
	parts []*Series // of the window that is measured
	read  int64     // slots that Next gave
}

// liveSlots is how many intervals late a reader of a forgetting series may come.
const liveSlots = 16

// NewLive watches by intervals of this length, where the plan has none of its own.
func NewLive(every time.Duration) *Live { return &Live{every: every} }

// Ring is a series that keeps the last slots alone.
func (l *Live) Ring() *Series {
	s := &Series{every: int64(l.every), slots: make([]seriesSlot, liveSlots+2), Ring: true}
	clear(s.slots)
	return s
}

// Begin follows the series of a window.
func (l *Live) Begin(parts []*Series) {
	l.mu.Lock()
	l.parts, l.read = parts, 0
	l.mu.Unlock()
}

// Next is the next finished interval of the window that is measured, all workers together; false: none is finished.
func (l *Live) Next() (p reports.SeriesPoint, every time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.parts) == 0 {
		return p, 0, false
	}
	first := l.parts[0]
	finished, latest := first.finished.Load(), first.finished.Load()
	for _, s := range l.parts[1:] {
		finished, latest = min(finished, s.finished.Load()), max(latest, s.finished.Load())
	}
	if first.Ring && latest-l.read > liveSlots {
		l.read = min(latest-1, finished) // came too late: what is older is being written again
	}
	if l.read >= finished {
		return p, 0, false
	}
	var sum seriesSlot
	for _, s := range l.parts {
		sum.add(&s.slots[l.read%int64(len(s.slots))])
	}
	p = reports.SeriesPoint{OffsetNs: l.read * first.every, Operations: sum.ops, P50: sum.quantile(500),
		P99: sum.quantile(990), Max: float64(sum.max)}
	l.read++
	return p, time.Duration(first.every), true
}
