package lite

import "time"

// Of callers that poll one leads: it polls for all of its node. The others sleep until their answers are there, or
// until they are to lead.

// followNap bounds a sleep, against a leader that is not run.
const followNap = time.Millisecond

func (c *Client) leads() bool {
	n := c.node
	return n.leader.Load() == c || n.leader.CompareAndSwap(nil, c)
}

// handOver makes a client that follows lead.
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

// follow sleeps until the answer of p may be there or the client may lead; false at the deadline.
func (c *Client) follow(w *waiter, p Pending) bool {
	if w.waited(time.Now()) > c.cfg.Timeout || c.interrupted.Load() {
		return false
	}
	n := c.node
	n.followers.Add(1)
	c.following.Store(true)
	c.asleep.Store(true)
	// After the words above are set, so that the end of the call or of the lead is seen or wakes.
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
