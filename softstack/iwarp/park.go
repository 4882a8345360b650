package iwarp

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// parkedOn is the socket that the Wait of a CQ of one QP parks on. It takes a read to look and one that brings octets,
// where the poller takes two looks more.
type parkedOn struct {
	q    *qp
	conn stream.Conn
	look func() bool
	no   bool // the runtime refused
}

// parkOnce waits by parking on a socket, or reports false where there is none to park on.
func (c *cq) parkOnce(ctx context.Context) bool {
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	p := c.parkOn(ctx) // before the look: who changes something behind that ends the parking
	c.parks.Store(p != nil)
	if p == nil {
		return false
	}
	defer c.parked.Store(nil)
	if c.fallAsleep(ctx) {
		p.no = p.conn.Park(p.look) != nil
		c.awake()
	}
	return true
}

// parkOn is what Wait parks on from here on; nil where it needs the poller: for several QPs or waiters, for room in the
// socket, and for what no octet reports.
func (c *cq) parkOn(ctx context.Context) *parkedOn {
	list := c.qps.Load().list
	if len(list) != 1 || c.dev.cfg.OnAck || c.dev.receiver != nil || !rdma.Parks(ctx) {
		return nil
	}
	q := list[0]
	if q.send != c || q.recv != c { // the waiters of two queues would park on one socket
		return nil
	}
	q.mu.Lock()
	conn := q.conn
	parks := q.phase == phaseOpen && !q.tx.unsent() && conn.Parks()
	q.mu.Unlock()
	if !parks {
		return nil
	}
	if c.park == nil || c.park.q != q {
		c.park = &parkedOn{q: q, conn: conn, look: func() bool { return c.lookParked(q) }}
	}
	if c.park.no {
		return nil
	}
	c.parked.Store(c.park)
	if c.waiters.Load() > 1 { // the other one may have woken the poller only
		c.parked.Store(nil)
		return nil
	}
	return c.park
}

// lookParked moves the QP on, and reports whether its waiter has to look at what happened.
func (c *cq) lookParked(q *qp) bool {
	c.mu.Lock()
	c.asleep = false // completions of this step need not wake their own goroutine
	c.mu.Unlock()
	q.mu.Lock()
	before := q.rx.seen
	q.step()
	news := q.rx.seen != before || q.phase != phaseOpen || q.tx.unsent()
	q.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep = !news && !c.fired && !c.closed
	return !c.asleep
}

// rouse makes the Wait in progress look again at what it waits for.
func (c *cq) rouse() {
	if p := c.parked.Load(); p != nil {
		p.conn.Unpark()
	} else {
		c.poller.Wake()
	}
}
