package lite

import (
	"context"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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

// cpus says whether polling pays. Tests replace it.
var cpus = &procs.CPUs

// mostRest bounds a sleep. Arbitrary: whatever concerns the sleeper ends it.
const mostRest = 100 * time.Millisecond

type rest struct {
	wake chan struct{}
	end  context.CancelFunc
}

// Rest sleeps until something arrives, wake has a token by Signal, or d is over. One caller at a time sleeps in the
// device; others, and all where that has no events, wait for the goroutine that finds their arrival.
func (n *Node) Rest(wake chan struct{}, d time.Duration) {
	if !n.caps.Features.Has(rdma.FeatEvents) || !n.enter() {
		n.aside.Add(1)
		n.SleepUntil(wake, d)
		n.aside.Add(-1)
		return
	}
	n.activity.Add(minPolls(maxPollPause)) // the polling goroutine leaves arrivals to callers
	d = min(d, mostRest)
	if n.deferred.Load() > 0 {
		d = pollPause
	}
	ctx, end := context.WithTimeout(n.ctx, d)
	n.resting.Store(&rest{wake: wake, end: end})
	n.await(ctx, wake)
	n.resting.Store(nil)
	end()
	n.device.Unlock()
	if n.parked.Load() || n.aside.Load() > 0 {
		signal(n.kick)
	}
}

// enter gets the device, from the polling goroutine, too, unless other callers rest on that.
func (n *Node) enter() bool {
	if n.device.TryLock() {
		return true
	}
	t := time.NewTimer(pollPause)
	defer t.Stop()
	for range 2 { // the first token may be an old one
		c := n.sleeping.Load()
		if c == nil || n.aside.Load() > 0 {
			break
		}
		n.activity.Add(minPolls(maxPollPause)) // so that it does not come back
		select {
		case <-n.kick: // of who rested aside before
		default:
		}
		(*c)()
		select {
		case <-n.left:
		case <-t.C:
			return n.device.TryLock()
		}
		if n.device.TryLock() {
			return true
		}
	}
	return false
}

// Signal puts a token into wake, and ends the Rest that waits for it.
func (n *Node) Signal(wake chan struct{}) {
	signal(wake)
	if r := n.resting.Load(); r != nil && r.wake == wake {
		r.end()
	}
}
