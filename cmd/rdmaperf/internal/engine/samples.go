package engine

import (
	"container/heap"
	"unsafe"

	"golang.org/x/sys/unix"

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

// RawBuffer keeps the samples of one worker. Its memory is there before the window; what does not fit is counted.
type RawBuffer struct {
	Samples []rawSample
	N       int
	Dropped int64
}

type rawSample struct {
	end, ns, service int64
}

// Take adds one sample that ended at t.
func (r *RawBuffer) Take(t, ns, service int64) {
	if r.N == len(r.Samples) {
		r.Dropped++
		return
	}
	r.Samples[r.N] = rawSample{t, ns, service}
	r.N++
}

// RawStore is a client's memory for raw samples, kept from point to point, outside the heap and so of no concern to the
// collector.
type RawStore struct {
	Limit   int // of a set, all workers together
	hand    func(*Samples) error
	memory  []rawSample // what the buffers share out among themselves
	mapped  []byte      // the memory as it was mapped; nil: of the heap
	buffers []*RawBuffer
}

// Share gives n workers empty buffers, and touches every page.
func (s *RawStore) Share(n int) []*RawBuffer {
	s.grow()
	clear(s.memory[:s.Limit])
	for len(s.buffers) < n {
		s.buffers = append(s.buffers, new(RawBuffer))
	}
	from := 0
	for i, b := range s.buffers[:n] {
		room := s.Limit / n
		if i < s.Limit%n {
			room++
		}
		*b = RawBuffer{Samples: s.memory[from : from+room : from+room]}
		from += room
	}
	return s.buffers[:n]
}

func (s *RawStore) grow() {
	if len(s.memory) >= s.Limit {
		return
	}
	s.Free()
	size := s.Limit * int(unsafe.Sizeof(rawSample{}))
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil { // such as a limit of the address space, which the heap may have left
		s.memory = make([]rawSample, s.Limit)
		return
	}
	s.mapped = b
	s.memory = unsafe.Slice((*rawSample)(unsafe.Pointer(unsafe.SliceData(b))), s.Limit)
}

// Free gives the memory back. No buffer is valid after it.
func (s *RawStore) Free() {
	if s.mapped != nil {
		unix.Munmap(s.mapped) // fails for nothing that was mapped
	}
	s.memory, s.mapped, s.buffers = nil, nil, nil
}
