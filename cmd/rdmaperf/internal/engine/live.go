package engine

import (
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

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
