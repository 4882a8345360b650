package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

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
