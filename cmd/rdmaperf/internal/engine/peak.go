package engine

import "github.com/rdmaperf/rdmaperf/reports"

// Peak finds the highest rate of a stream over parts of its window. Of up to SpanMessages messages it is perftest's:
// the best of all spans from a post to a completion. Of others completions are counted in slots of equal length; when
// these are used up, each two become one.
type Peak struct {
	begin, every int64 // ns
	next         int64 // end of the current slot
	At           int   // current slot
	Slots        [peakSlots]int64

	moments []moment // nil: slots alone
}

const (
	peakSlots = 512
	peakEvery = 1_000_000 // ns, the shortest slot

	// peakOutstanding is how many times what is outstanding must complete in a slot: of a late thread all of it may be
	// too much.
	peakOutstanding = 8
)

func (p *Peak) start(t int64) {
	*p = Peak{begin: t, every: peakEvery, next: t + peakEvery, moments: p.moments}
}

// count adds n operations seen complete at t, which never runs backwards.
func (p *Peak) count(t, n int64) {
	for t >= p.next {
		if p.At == peakSlots-1 {
			p.fold()
		}
		p.At++
		p.next += p.every
	}
	p.Slots[p.At] += n
	if p.moments != nil && n > 0 {
		p.moments = append(p.moments, moment{t: t, done: n})
	}
}

func (p *Peak) fold() {
	for i := range peakSlots / 2 {
		p.Slots[i] = p.Slots[2*i] + p.Slots[2*i+1]
	}
	clear(p.Slots[peakSlots/2:])
	p.At /= 2
	p.every *= 2
	p.next = p.begin + int64(p.At+1)*p.every
}

// Merge adds another worker's slots of the same window.
func (p *Peak) Merge(o *Peak) {
	for p.every < o.every {
		p.fold()
	}
	for p.every > o.every {
		o.fold()
	}
	for i := range p.Slots {
		p.Slots[i] += o.Slots[i]
	}
	p.At = max(p.At, o.At)
	p.moments = append(p.moments, o.moments...)
}

// Report fills in the peak: of the best span, or of the best slot, folded until a slot has enough operations.
func (p *Peak) Report(t *reports.Throughput, size, outstanding int) {
	if p == nil || p.reportSpan(t, size) {
		return
	}
	for p.At >= 2 && t.OperationsPerSecond*float64(p.every)/1e9 < float64(peakOutstanding*outstanding) {
		p.fold()
	}
	if p.At < 2 { // the current one was cut off by the window's end
		return
	}
	var most int64
	for _, n := range p.Slots[:p.At] {
		most = max(most, n)
	}
	// The whole window is a part of itself.
	t.PeakBytesPerSecond = max(float64(most)*float64(size)/(float64(p.every)/1e9), t.BytesPerSecond)
	t.PeakOverNs = p.every
}
