package tcp

import "math/bits"

// ring is a queue that allocates nothing after newRing. Indices run free and wrap; the buffer is a power of two.
type ring[T any] struct {
	buf        []T
	head, tail uint32
	depth      uint32
}

func newRing[T any](depth int) ring[T] {
	return ring[T]{buf: make([]T, 1<<bits.Len(uint(max(depth, 1)-1))), depth: uint32(depth)}
}

func (r *ring[T]) len() int    { return int(r.tail - r.head) }
func (r *ring[T]) empty() bool { return r.tail == r.head }
func (r *ring[T]) full() bool  { return r.tail-r.head >= r.depth }

func (r *ring[T]) at(i uint32) *T { return &r.buf[i&uint32(len(r.buf)-1)] }

// front is the oldest element; the ring must not be empty.
func (r *ring[T]) front() *T { return r.at(r.head) }

// push makes room at the end; the ring must not be full. The element holds what its place held before.
func (r *ring[T]) push() *T {
	p := r.at(r.tail)
	r.tail++
	return p
}

func (r *ring[T]) pop() { r.head++ }
