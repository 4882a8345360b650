package engine

import (
	"container/heap"

	"github.com/rdmaperf/rdmaperf/reports"
)

// MaxSamples bounds the raw samples kept of one set: 480 MB.
const MaxSamples = 20_000_000

// Samples are the raw latency samples of one set of a point, valid during the call that hands them over.
type Samples struct {
	Set     string // reports.SamplesLatency and so on
	Open    bool   // of an open loop: samples have a service time
	Dropped int64  // recorded, and not kept for lack of room

	begin   int64 // of the window
	workers []*RawBuffer
}

// KeepSamples makes the client keep up to limit samples of each set and hand them over behind the window. An error of
// take ends the point.
func (c *Client) KeepSamples(limit int, take func(*Samples) error) {
	if c.Raw == nil {
		c.Raw = new(RawStore)
	}
	c.Raw.Limit, c.Raw.hand = limit, take
}

// HandSamples gives a finished phase's samples away.
func (m *Measurement) HandSamples(set string, out *Outcome) error {
	m.Group.Raw = nil
	buffers := make([]*RawBuffer, len(m.Group.Workers))
	for i, w := range m.Group.Workers {
		buffers[i] = w.Raw
	}
	return m.HandBuffers(set, out, buffers)
}

// HandBuffers gives the samples of workers away and notes their number.
func (m *Measurement) HandBuffers(set string, out *Outcome, buffers []*RawBuffer) error {
	store := m.Raw()
	if store == nil || out == nil || out.Rec == nil {
		return nil
	}
	s := &Samples{Set: set, Open: out.Service != nil, begin: out.Begin, workers: buffers}
	for _, b := range buffers {
		s.Dropped += b.Dropped
	}
	m.samples = append(m.samples, reports.RawSamples{Set: set, Count: s.Count(), Dropped: s.Dropped,
		Limit: int64(store.Limit)})
	err := store.hand(s)
	if err != nil {
		m.failures++
	}
	return err
}

// Count is the number of samples kept.
func (s *Samples) Count() (n int64) {
	for _, w := range s.workers {
		n += int64(w.N)
	}
	return n
}

// Each calls f for every sample in the order in which they ended, until it fails. A heap merges the workers, of which
// there may be thousands.
func (s *Samples) Each(f func(reports.Sample) error) error {
	h := make(sampleHeap, 0, len(s.workers))
	for i, w := range s.workers {
		if w.N > 0 {
			h = append(h, sampleCursor{worker: i, left: w.Samples[:w.N]})
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		c := &h[0]
		v := c.left[0]
		if err := f(reports.Sample{Thread: c.worker, OffsetNs: v.end - s.begin, Ns: v.ns,
			ServiceNs: v.service}); err != nil {
			return err
		}
		if c.left = c.left[1:]; len(c.left) > 0 {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return nil
}

// sampleCursor is what of a worker's samples was not handed over, never empty.
type sampleCursor struct {
	worker int
	left   []rawSample
}

// sampleHeap has the worker on top whose next sample ended first.
type sampleHeap []sampleCursor

func (h sampleHeap) Len() int      { return len(h) }
func (h sampleHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *sampleHeap) Push(x any)   { *h = append(*h, x.(sampleCursor)) }

func (h sampleHeap) Less(i, j int) bool {
	a, b := h[i].left[0].end, h[j].left[0].end
	return a < b || a == b && h[i].worker < h[j].worker
}

func (h *sampleHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
