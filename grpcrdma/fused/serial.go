package fused

import "sync"

// serial runs functions one after the other, in the order they were given, in a goroutine that ends when there is
// nothing to do. The zero value is ready.
type serial struct {
	mu     sync.Mutex
	queue  []func() // the first one runs
	closed bool
	work   sync.WaitGroup
}

// do lets f run; false when closed.
func (s *serial) do(f func()) bool { return s.add(f, false) }

// close lets last run as the last one, and returns when it has. Idempotent.
func (s *serial) close(last func()) {
	s.add(last, true)
	s.work.Wait()
}

func (s *serial) add(f func(), last bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = last
	if s.queue = append(s.queue, f); len(s.queue) == 1 {
		s.work.Go(s.run)
	}
	return true
}

func (s *serial) run() {
	for more := true; more; {
		s.mu.Lock()
		f := s.queue[0]
		s.mu.Unlock()
		f()
		s.mu.Lock()
		s.queue = s.queue[1:]
		more = len(s.queue) > 0
		s.mu.Unlock()
	}
}
