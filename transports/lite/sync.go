package lite

import "slices"

// The manager keeps barriers and semaphores: each call is one call of it, answered when it is due.

type barrier struct {
	count   int
	waiting []waitingCall
}

type semaphore struct {
	free    int
	waiting []waitingCall
	held    map[int]int // by node
}

type waitingCall struct {
	r  Request
	id uint64
}

type barrierRequest struct {
	Name   string
	Count  int
	Nodes  []int // that are waited for, where they are known
	ID     uint64
	Cancel bool
}

type semRequest struct {
	Name   string
	Free   int // initial value
	ID     uint64
	Cancel bool
}

// maxWaiting bounds the callers that wait at one barrier or semaphore, and the number of those.
const maxWaiting = 4096

// Barrier waits until count callers of that name have called it. When a node fails, the waiting
// callers get ErrPeerDead: it may have been one of the missing.
func (c *Client) Barrier(name string, count int) error {
	return c.waitBarrier(barrierRequest{Name: name, Count: count})
}

// BarrierOf is Barrier of one caller of each of these nodes. A call while one of them is lost gets
// ErrPeerDead, too.
func (c *Client) BarrierOf(name string, nodes []int) error {
	return c.waitBarrier(barrierRequest{Name: name, Count: len(nodes), Nodes: nodes})
}

func (c *Client) waitBarrier(q barrierRequest) error {
	q.ID = c.node.serial.Add(1)
	err := c.ask(0, opBarrier, q, nil)
	if err == ErrTimeout {
		q.Cancel = true
		_ = c.ask(0, opBarrier, q, nil) // too late is as good
	}
	return err
}

func (m *manager) barrier(r *Request, q *barrierRequest) error {
	b := m.barriers[q.Name]
	switch {
	case q.Cancel:
		if b != nil {
			b.waiting = cancel(b.waiting, r.From, q.ID)
		}
		return nil
	case q.Count < 1 || q.Count > maxWaiting || q.Name == "" || len(q.Name) > 255:
		return ErrFail
	case slices.ContainsFunc(q.Nodes, func(id int) bool { return !m.node.alive(id) }):
		return ErrPeerDead
	case b == nil:
		if len(m.barriers) >= maxWaiting {
			return ErrNoSpace
		}
		b = &barrier{count: q.Count}
		m.barriers[q.Name] = b
	case b.count != q.Count:
		return ErrExists
	}
	b.waiting = append(b.waiting, waitingCall{*r, q.ID})
	if len(b.waiting) < b.count {
		return errLater
	}
	delete(m.barriers, q.Name)
	for i := range b.waiting {
		_ = b.waiting[i].r.Reply([]byte("{}")) // the loss of a node is detected elsewhere
	}
	return errLater
}

// cancel takes the call of a node out of a list, and ends it.
func cancel(list []waitingCall, node int, id uint64) []waitingCall {
	for i := range list {
		if list[i].r.From == node && list[i].id == id {
			list[i].r.refuse(ErrTimeout)
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// Semaphore is a counter in the cluster.
type Semaphore struct {
	c    *Client
	name string
	free int
}

// Semaphore opens the semaphore of that name; free is its initial value.
func (c *Client) Semaphore(name string, free int) *Semaphore {
	return &Semaphore{c: c, name: name, free: free}
}

// Acquire takes one, waiting for it at most for the client's timeout. What a node had
// taken when it died is given back.
func (s *Semaphore) Acquire() error {
	q := semRequest{Name: s.name, Free: s.free, ID: s.c.node.serial.Add(1)}
	err := s.c.ask(0, opSemAcquire, q, nil)
	if err == ErrTimeout {
		q.Cancel = true
		_ = s.c.ask(0, opSemAcquire, q, nil) // it may have been given meanwhile: then it goes back
	}
	return err
}

// Release gives one back.
func (s *Semaphore) Release() error {
	return s.c.ask(0, opSemRelease, semRequest{Name: s.name, Free: s.free}, nil)
}

func (m *manager) acquire(r *Request, q *semRequest) error {
	s := m.sems[q.Name]
	if s == nil {
		if q.Name == "" || len(q.Name) > 255 || q.Free < 0 || len(m.sems) >= maxWaiting {
			return ErrFail
		}
		s = &semaphore{free: q.Free, held: map[int]int{}}
		m.sems[q.Name] = s
	}
	if q.Cancel {
		if before := len(s.waiting); len(cancelIn(s, r.From, q.ID)) == before {
			_, err := m.release(r.From, q)
			return err
		}
		return nil
	}
	if len(s.waiting) >= maxWaiting {
		return ErrNoSpace
	}
	s.waiting = append(s.waiting, waitingCall{*r, q.ID})
	s.serve(m.node)
	return errLater
}

func cancelIn(s *semaphore, node int, id uint64) []waitingCall {
	s.waiting = cancel(s.waiting, node, id)
	return s.waiting
}

func (s *semaphore) serve(n *Node) {
	for s.free > 0 && len(s.waiting) > 0 {
		w := s.waiting[0]
		s.waiting = s.waiting[1:]
		if !n.alive(w.r.From) {
			continue
		}
		s.free--
		s.held[w.r.From]++
		_ = w.r.Reply([]byte("{}")) // the loss of a node is detected elsewhere
	}
}

func (m *manager) release(from int, q *semRequest) (empty, error) {
	s := m.sems[q.Name]
	if s == nil {
		return empty{}, ErrNoRegion
	}
	if s.held[from] > 0 {
		s.held[from]--
	}
	s.free++
	s.serve(m.node)
	return empty{}, nil
}

// releaseWaiters ends waits for a lost node, and releases its semaphores.
func (m *manager) releaseWaiters(node int) {
	for name, b := range m.barriers {
		delete(m.barriers, name)
		for i := range b.waiting {
			b.waiting[i].r.refuse(ErrPeerDead)
		}
	}
	for _, s := range m.sems {
		s.free += s.held[node]
		delete(s.held, node)
		s.serve(m.node)
	}
}
