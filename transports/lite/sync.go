package lite

import "slices"

// The manager keeps barriers: each call is one call of it, answered when all are there.

type barrier struct {
	count   int
	waiting []waitingCall
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

// maxWaiting bounds the callers that wait at one barrier, and the number of barriers.
const maxWaiting = 4096

// Barrier waits until count callers have called that name. ErrPeerDead when a node fails: it may have been missing.
func (c *Client) Barrier(name string, count int) error {
	return c.waitBarrier(barrierRequest{Name: name, Count: count})
}

// BarrierOf is Barrier of one caller of each of these nodes, with ErrPeerDead also once one of them is lost.
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

func (m *manager) barrier(r *Request, q *barrierRequest) (a empty, err error) {
	b := m.barriers[q.Name]
	switch {
	case q.Cancel:
		if b != nil {
			b.waiting = slices.DeleteFunc(b.waiting, func(w waitingCall) bool {
				mine := w.r.From == r.From && w.id == q.ID
				if mine {
					w.r.refuse(ErrTimeout)
				}
				return mine
			})
		}
		return a, nil
	case q.Count < 1 || q.Count > maxWaiting || q.Name == "" || len(q.Name) > 255:
		return a, ErrFail
	case slices.ContainsFunc(q.Nodes, func(id int) bool { return !m.node.alive(id) }):
		return a, ErrPeerDead
	case b == nil:
		if len(m.barriers) >= maxWaiting {
			return a, ErrNoSpace
		}
		b = &barrier{count: q.Count}
		m.barriers[q.Name] = b
	case b.count != q.Count:
		return a, ErrExists
	}
	b.waiting = append(b.waiting, waitingCall{*r, q.ID})
	if len(b.waiting) < b.count {
		return a, errLater
	}
	delete(m.barriers, q.Name)
	for i := range b.waiting {
		_ = b.waiting[i].r.Reply([]byte("{}")) // the loss of a node is detected elsewhere
	}
	return a, errLater
}

// releaseWaiters ends waits that a lost node may never complete.
func (m *manager) releaseWaiters() {
	for name, b := range m.barriers {
		delete(m.barriers, name)
		for i := range b.waiting {
			b.waiting[i].r.refuse(ErrPeerDead)
		}
	}
}
