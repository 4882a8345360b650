package bench

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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
// It is outside the heap: the collector runs while calls are measured, and a larger
// heap would have it run less often than without samples.
type rawStore struct {
	limit   int // of a set, all workers together
	hand    func(*Samples) error
	memory  []rawSample // what the buffers share out among themselves
	mapped  []byte      // the memory as it was mapped; nil: of the heap
	buffers []*rawBuffer
}

// share gives n workers empty buffers, and touches every page.
func (s *rawStore) share(n int) []*rawBuffer {
	s.grow()
	clear(s.memory[:s.limit])
	for len(s.buffers) < n {
		s.buffers = append(s.buffers, new(rawBuffer))
	}
	from := 0
	for i, b := range s.buffers[:n] {
		room := s.limit / n
		if i < s.limit%n {
			room++
		}
		*b = rawBuffer{samples: s.memory[from : from+room : from+room]}
		from += room
	}
	return s.buffers[:n]
}

// prepare shares the memory out among workers.
func (s *rawStore) prepare(workers []*worker) {
	for i, b := range s.share(len(workers)) {
		workers[i].raw = b
	}
}

// grow makes room for the limit.
func (s *rawStore) grow() {
	if len(s.memory) >= s.limit {
		return
	}
	s.free()
	size := s.limit * int(unsafe.Sizeof(rawSample{}))
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil { // such as a limit of the address space, which the heap may have left
		s.memory = make([]rawSample, s.limit)
		return
	}
	s.mapped = b
	s.memory = unsafe.Slice((*rawSample)(unsafe.Pointer(unsafe.SliceData(b))), s.limit)
}

// free gives the memory back. No buffer is valid after it.
func (s *rawStore) free() {
	if s.mapped != nil {
		unix.Munmap(s.mapped) // fails for nothing that was mapped
	}
	s.memory, s.mapped, s.buffers = nil, nil, nil
}
