package memdev

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type notice uint8

const (
	noNotice notice = iota
	onSolicited
	onAny
)

type cqEntry struct {
	wc   rdma.WC
	from *slots
	free int
}

type cq struct {
	dev     *Device
	closed  bool
	overrun bool
	users   int
	ring    []cqEntry
	head    int
	count   int
	armed   notice
	fired   int           // events that nobody has waited for yet
	wake    chan struct{} // token when fired or closed changed

	// busy tells Poll without the lock whether there is anything to see here.
	busy atomic.Bool
}

// NewCQ makes a completion queue of exactly depth entries.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	fail := func(err error) (rdma.CQ, error) {
		return nil, &rdma.OpError{Op: "create cq", Object: fmt.Sprintf("depth %d", depth), Err: err}
	}
	if depth < 1 || depth > caps.MaxCQE {
		return fail(rdma.ErrInvalid)
	}
	d.fab.lock()
	defer d.fab.unlock()
	if err := d.alive(); err != nil {
		return fail(err)
	}
	d.open++
	return &cq{dev: d, ring: make([]cqEntry, depth), wake: make(chan struct{}, 1)}, nil
}

func (d *Device) ownCQ(c rdma.CQ) (*cq, error) {
	own, _ := c.(*cq)
	switch {
	case own == nil || own.dev != d:
		return nil, fmt.Errorf("no cq of this device: %w", rdma.ErrInvalid)
	case own.closed:
		return nil, fmt.Errorf("cq: %w", rdma.ErrClosed)
	}
	return own, nil
}

// push adds a completion of q. The place it came from is given back by Poll.
func (c *cq) push(q *qp, wc rdma.WC, from *slots, solicited bool) {
	faults := &c.dev.fab.faults
	if faults.hit(FaultDropCompletion, c.dev) {
		from.unsignaled++
		return
	}
	if !c.put(q, cqEntry{wc, from, from.unsignaled + 1}) {
		return
	}
	from.unsignaled = 0
	if c.count > 1 && c.last(1).from == from && faults.hit(FaultReorderCompletions, c.dev) {
		a, b := c.last(0), c.last(1)
		a.wc, b.wc = b.wc, a.wc
	}
	if faults.hit(FaultDuplicateCompletion, c.dev) {
		c.put(q, cqEntry{wc, from, 0})
	}
	if c.armed == onAny || c.armed == onSolicited && (solicited || wc.Status != rdma.StatusSuccess) {
		c.fire()
	}
}

// put loses a full queue and the QP whose completion did not fit, and no other (IBTA 11.6.3.2, RFC 5040 §8.1.1).
func (c *cq) put(q *qp, e cqEntry) bool {
	if c.overrun || c.count == len(c.ring) {
		if !c.overrun {
			c.overrun = true
			c.busy.Store(true)
			c.dev.raise(rdma.EventCQError, 0)
			if c.armed != noNotice {
				c.fire()
			}
			signal(c.wake)
		}
		if q.state != rdma.QPErr {
			c.dev.fab.doomed = append(c.dev.fab.doomed, q)
		}
		return false
	}
	c.ring[(c.head+c.count)%len(c.ring)] = e
	c.count++
	c.busy.Store(true)
	return true
}

func (c *cq) last(i int) *cqEntry { return &c.ring[(c.head+c.count-1-i)%len(c.ring)] }

func (c *cq) fire() {
	c.armed = noNotice
	if c.dev.fab.faults.hit(FaultLoseEvent, c.dev) {
		return
	}
	c.fired++
	signal(c.wake)
}

// Poll moves completions into dst. After an overrun it hands out what was kept,
// always with ErrCQOverrun. An empty queue costs two loads and no lock.
func (c *cq) Poll(dst []rdma.WC) (n int, err error) {
	f := c.dev.fab
	if !c.busy.Load() && f.attention.Load() == 0 {
		return 0, nil
	}
	f.lock()
	defer f.unlock()
	f.drive()
	if c.closed {
		return 0, rdma.ErrClosed
	}
	for n < len(dst) && c.count > 0 {
		e := &c.ring[c.head]
		dst[n] = e.wc
		e.from.used -= e.free
		e.from = nil
		if c.head++; c.head == len(c.ring) {
			c.head = 0
		}
		c.count--
		n++
	}
	if c.overrun {
		return n, rdma.ErrCQOverrun
	}
	c.busy.Store(c.count > 0)
	return n, nil
}

// Arm asks for one event; a request for any completion outranks one for solicited completions (IBTA C11-31, C11-32).
func (c *cq) Arm(solicitedOnly bool) error {
	c.dev.fab.lock()
	defer c.dev.fab.unlock()
	switch {
	case c.closed:
		return rdma.ErrClosed
	case c.overrun:
		return rdma.ErrCQOverrun
	case !solicitedOnly:
		c.armed = onAny
	case c.armed == noNotice:
		c.armed = onSolicited
	}
	return nil
}

// Wait takes one event. Each firing of an armed request is one event.
func (c *cq) Wait(ctx context.Context) (err error) {
	f := c.dev.fab
	f.lock()
	defer f.unlock()
	ended := f.await(ctx, c.wake, func() bool {
		switch {
		case c.closed:
			err = rdma.ErrClosed
		case c.fired > 0:
			c.fired--
		case c.overrun:
			err = rdma.ErrCQOverrun
		default:
			return false
		}
		return true
	})
	if c.closed || c.overrun || c.fired > 0 {
		signal(c.wake) // for the next waiter
	}
	if ended != nil {
		return ended
	}
	return err
}

// Close fails with ErrBusy while a QP uses the queue. Waiters get ErrClosed.
func (c *cq) Close() error {
	c.dev.fab.lock()
	defer c.dev.fab.unlock()
	if c.closed {
		return nil
	}
	if c.users > 0 {
		return &rdma.OpError{Op: "close cq", Object: fmt.Sprintf("depth %d", len(c.ring)), Err: rdma.ErrBusy}
	}
	c.closed = true
	c.busy.Store(true)
	c.dev.open--
	signal(c.wake)
	return nil
}
