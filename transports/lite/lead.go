package lite

import "time"

// Of callers that poll, one polls for all of its node: it leads. The others sleep until
// their answers are there, or until they are to lead. So a node has one busy thread
// however many callers, and a caller alone pays a compare and swap.

// followNap bounds a sleep, against a leader that is not run.
const followNap = time.Millisecond

// leads makes the client the one that polls, if there is none.
func (c *Client) leads() bool {
	n := c.node
	return n.leader.Load() == c || n.leader.CompareAndSwap(nil, c)
}

// handOver ends that: a client that follows leads now.
func (c *Client) handOver() {
	n := c.node
	if n.leader.Load() != c {
		return
	}
	n.leader.Store(nil)
	if n.followers.Load() == 0 {
		return
	}
	for i := range n.most.Load() {
		if o := n.clients[i].Load(); o != nil && o != c && o.following.Load() {
			n.Signal(o.wakeup)
			return
		}
	}
}

// follow sleeps until the answer of p may be there or the client may lead. It is false
// at the deadline.
func (c *Client) follow(w *waiter, p Pending) bool {
	now := time.Now()
	if w.start.IsZero() {
		w.start = now
	}
	if now.Sub(w.start) > c.cfg.Timeout || c.interrupted.Load() {
		return false
	}
	n := c.node
	n.followers.Add(1)
	c.following.Store(true)
	c.asleep.Store(true)
	// Checked after the words above are set, so that the end of the call or of the lead either is
	// seen or wakes.
	if _, state := p.slot.state(); state == callWaiting && n.leader.Load() != nil {
		if c.timer == nil {
			c.timer = time.NewTimer(followNap)
		} else {
			c.timer.Reset(followNap)
		}
		select {
		case <-c.wakeup:
			c.timer.Stop()
		case <-c.timer.C:
		case <-n.ctx.Done():
		}
	}
	c.markAwake()
	c.following.Store(false)
	n.followers.Add(-1)
	return true
}
