package lite

import "sync/atomic"

// Queue is a list that grows: who comes first is taken first. Its owner's lock guards Push and Pop.
type Queue[T any] struct {
	all          []T // ring
	first, count int
	queued       atomic.Int32 // = count
}

// Len is how many there are. It needs no lock.
func (q *Queue[T]) Len() int { return int(q.queued.Load()) }

// Push adds one.
func (q *Queue[T]) Push(v *T) {
	if q.count == len(q.all) {
		grown := make([]T, max(2*q.count, 64))
		n := copy(grown, q.all[q.first:])
		copy(grown[n:], q.all[:q.first])
		q.all, q.first = grown, 0
	}
	q.all[(q.first+q.count)%len(q.all)] = *v
	q.count++
	q.queued.Store(int32(q.count))
}

// Pop takes the oldest, if there is one.
func (q *Queue[T]) Pop(v *T) bool {
	if q.count == 0 {
		return false
	}
	var none T
	*v, q.all[q.first] = q.all[q.first], none
	q.first = (q.first + 1) % len(q.all)
	q.count--
	q.queued.Store(int32(q.count))
	return true
}
