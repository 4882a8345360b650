package bench

import (
	"github.com/rdmaperf/rdmaperf/reports"
)

// MaxSamples bounds the raw samples kept of one set: 480 MB, below the memory
// limit that keeps the collector off in a window.
const MaxSamples = 20_000_000

// Samples are the raw latency samples of one set of a point, as the recorder got
// them. They are valid during the call that hands them over: the next phase uses
// their memory again.
type Samples struct {
	Set     string // reports.SamplesLatency and so on
	Open    bool   // of an open loop: samples have a service time
	Dropped int64  // recorded, and not kept for lack of room

	begin   int64 // of the window
	workers []*rawBuffer
}

// rawBuffer keeps the samples of one worker. Its memory is there before the
// window; what does not fit is counted.
type rawBuffer struct {
	samples []rawSample
	n       int
	dropped int64
}

type rawSample struct {
	end, ns, service int64
}

// take adds one sample that ended at t.
func (r *rawBuffer) take(t, ns, service int64) {
	if r.n == len(r.samples) {
		r.dropped++
		return
	}
	r.samples[r.n] = rawSample{t, ns, service}
	r.n++
}

// rawStore is the memory of a client for raw samples, kept from point to point.
type rawStore struct {
	limit   int // of a set, all workers together
	hand    func(*Samples) error
	buffers []*rawBuffer
}

// prepare shares the limit out among workers and touches every page.
func (s *rawStore) prepare(workers []*worker) {
	for len(s.buffers) < len(workers) {
		s.buffers = append(s.buffers, new(rawBuffer))
	}
	for i, w := range workers {
		room := s.limit / len(workers)
		if i < s.limit%len(workers) {
			room++
		}
		b := s.buffers[i]
		if cap(b.samples) < room {
			b.samples = make([]rawSample, room)
		}
		b.samples = b.samples[:room]
		clear(b.samples)
		b.n, b.dropped = 0, 0
		w.raw = b
	}
}

// KeepSamples makes the client keep every latency sample, up to limit for each set
// of a point, and hand them over after the window. An error of take ends the point.
func (c *Client) KeepSamples(limit int, take func(*Samples) error) {
	c.raw = &rawStore{limit: limit, hand: take}
}

// handSamples gives a finished phase's samples away and notes their number.
func (m *measurement) handSamples(set string, out *outcome) error {
	store := m.c.raw
	m.crew.raw = nil
	if store == nil || out == nil || out.rec == nil {
		return nil
	}
	s := &Samples{Set: set, Open: out.service != nil, begin: out.begin}
	for _, w := range m.crew.workers {
		s.workers = append(s.workers, w.raw)
		s.Dropped += w.raw.dropped
	}
	m.samples = append(m.samples, reports.RawSamples{Set: set, Count: s.Count(), Dropped: s.Dropped, Limit: int64(store.limit)})
	return store.hand(s)
}

// Count is the number of samples kept.
func (s *Samples) Count() (n int64) {
	for _, w := range s.workers {
		n += int64(w.n)
	}
	return n
}

// Each calls f for every sample in the order in which they ended, until it fails.
func (s *Samples) Each(f func(reports.Sample) error) error {
	next := make([]int, len(s.workers))
	for {
		first := -1
		for i, w := range s.workers {
			if next[i] < w.n && (first < 0 || w.samples[next[i]].end < s.workers[first].samples[next[first]].end) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		v := s.workers[first].samples[next[first]]
		next[first]++
		if err := f(reports.Sample{Thread: first, OffsetNs: v.end - s.begin, Ns: v.ns, ServiceNs: v.service}); err != nil {
			return err
		}
	}
}
