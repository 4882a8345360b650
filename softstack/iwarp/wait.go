package iwarp

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Arm asks for one event.
func (c *cq) Arm(solicitedOnly bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return rdma.ErrClosed
	}
	want := notifyAny
	if solicitedOnly {
		want = notifySolicited
	}
	c.armed = max(c.armed, want) // IBTA C11-31, C11-32: the stronger request wins
	if c.parks.Load() {
		c.spared.Store(true)
	}
	return nil
}

func (c *cq) takeEvent() (fired bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false, rdma.ErrClosed
	}
	fired = c.fired
	c.fired = false
	return fired, nil
}

// Wait blocks until the armed event fires. The waiting thread itself sleeps in
// epoll on the sockets of this CQ's QPs and drives them when it wakes, so that
// an event costs one wake-up and no hand-over.
func (c *cq) Wait(ctx context.Context) error {
	if c.waiters.Add(1) > 1 {
		c.rouse() // the first one goes on with short sleeps: this one depends on it
		defer context.AfterFunc(ctx, c.rouse)()
	} else {
		c.wakeAtEnd(ctx)
	}
	defer func() {
		c.waiters.Add(-1)
		c.dev.bg.leftWait()
	}()
	idle := -1 // sleeps in a row that brought nothing, behind the first look
	for {
		if fired, err := c.takeEvent(); fired || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.parkOnce(ctx) {
			continue
		}
		if idle < 0 {
			idle = 0
			c.beforeSleep()
			continue
		}
		n, err := c.sleep(ctx, idle)
		if err != nil {
			return err
		}
		if idle++; n > 0 {
			idle = 0
		}
		c.lookBeside()
	}
}

// beforeSleep puts the sockets into the poller, and moves on what the poller does not report.
func (c *cq) beforeSleep() {
	if !c.waited.Swap(true) {
		for _, q := range c.qps.Load().list {
			q.joinPollers()
		}
	}
	if c.dev.receiver != nil {
		c.drive()
	}
	for _, q := range c.qps.Load().list {
		q.beforeSleep(c)
	}
}

// wakeAtEnd makes the end of ctx wake the poller. It stays so behind the wait: the next one mostly has the same
// context, and to watch it anew takes three allocations. The caller is the only one that waits.
func (c *cq) wakeAtEnd(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ends := ctx.Done(); ends != c.ends && !c.closed {
		c.unwatchEnd()
		c.ends, c.unwatch = ends, context.AfterFunc(ctx, c.rouse)
	}
}

// unwatchEnd ends the watch. The caller holds c.mu.
func (c *cq) unwatchEnd() {
	if c.unwatch != nil {
		c.unwatch()
	}
}

// lookBeside makes progress on the QPs of which the poller does not report everything. A look at every socket after
// every sleep would cost a thousand idle QPs a tenth of a processor.
func (c *cq) lookBeside() {
	for _, q := range c.qps.Load().list {
		if !q.polledBy(c) || c.dev.cfg.OnAck { // no poller reports an acknowledgement
			q.poll()
		}
	}
}

// sleep waits for a socket, a wake-up, or a slice of time, moves on what was reported, and
// says how many sockets it was. A second waiter lets the first one drive and only sleeps. Who is alone sleeps
// longer every time that nothing happens: everything that concerns it wakes it.
func (c *cq) sleep(ctx context.Context, idle int) (int, error) {
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	if !c.fallAsleep(ctx) {
		return 0, nil
	}
	slice := waitSlice
	if c.waiters.Load() == 1 {
		slice <<= min(idle, longSleeps)
	}
	if c.dev.cfg.OnAck {
		slice = ackSlice
	}
	n, err := c.poller.Wait(c.ready[:], sliceOf(ctx, slice), rdma.Parks(ctx))
	c.awake()
	c.driveReady(c.ready[:n])
	return n, err
}

// fallAsleep makes completions wake the sleeper from here on, unless there is nothing to wait for.
func (c *cq) fallAsleep(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep = !c.fired && !c.closed && ctx.Err() == nil
	return c.asleep
}

func (c *cq) awake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep = false
}

// longSleeps is how often a sleep doubles: 1.6 s at most. The runtime's
// monitor takes a look every 20 µs for a while after each.
const longSleeps = 4
