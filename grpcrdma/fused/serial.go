package fused

import "sync"

// serial runs functions one after the other, in the order they were given, in a
// goroutine that ends when there is nothing to do. The zero value is ready.
type serial struct {
	mu     sync.Mutex
	queue  []func()
	busy   chan struct{} // closed when the goroutine at work ends; nil: none is
	closed bool
}

// do lets f run; false when closed.
func (s *serial) do(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.add(f)
	return true
}

func (s *serial) add(f func()) {
	s.queue = append(s.queue, f)
	if s.busy == nil {
		s.busy = make(chan struct{})
		go s.work(s.busy)
	}
}

func (s *serial) work(over chan struct{}) {
	defer close(over)
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.busy = nil
			s.mu.Unlock()
			return
		}
		f := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		f()
	}
}

// close lets last run as the last one, and returns when it has. Idempotent.
func (s *serial) close(last func()) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.add(last)
	}
	over := s.busy
	s.mu.Unlock()
	if over != nil {
		<-over
	}
}
