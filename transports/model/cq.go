package model

import (
	"context"
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// vainPolls is how many polls of one queue in a row may find nothing because another queue has something earlier.
const vainPolls = 256

type event struct {
	wc    rdma.WC
	at    int64
	order uint64
	q     *qp // whose place it gives back
	freed uint64
}

// cq holds completions back until their time. world's lock guards it.
type cq struct {
	below rdma.CQ
	dev   *device
	heap  []event // the earliest first
	wcs   [64]rdma.WC
	err   error // of below
	armed bool
	empty int
}

// Poll moves what is due into dst, or what is due next; see the package.
func (c *cq) Poll(dst []rdma.WC) (int, error) {
	world.Lock()
	defer world.Unlock()
	return c.poll(dst)
}

func (c *cq) poll(dst []rdma.WC) (int, error) {
	c.drain()
	if len(c.heap) == 0 || len(dst) == 0 {
		return 0, c.err
	}
	if next := c.heap[0].at; next > c.dev.clock.Now() {
		if c.empty++; !c.armed && c.empty < vainPolls && c.dev.earlier(c, next) {
			return 0, c.err
		}
		c.dev.clock.Set(next)
	}
	c.empty, c.armed = 0, false
	n := 0
	for now := c.dev.clock.Now(); n < len(dst) && len(c.heap) > 0 && c.heap[0].at <= now; n++ {
		e := c.pop()
		dst[n] = e.wc
		if e.q == nil {
			continue
		}
		if e.freed == 0 {
			e.q.recvs--
		} else {
			e.q.freed = max(e.q.freed, e.freed)
		}
	}
	return n, c.err
}

func (d *device) earlier(c *cq, at int64) bool {
	for _, o := range d.cqs {
		if o == c {
			continue
		}
		if o.drain(); len(o.heap) > 0 && o.heap[0].at < at {
			return true
		}
	}
	return false
}

func (c *cq) drain() {
	for {
		n, err := c.below.Poll(c.wcs[:])
		c.err = err
		for i := range c.wcs[:n] {
			c.took(&c.wcs[i])
		}
		if n < len(c.wcs) {
			return
		}
	}
}

func (c *cq) took(wc *rdma.WC) {
	q := c.dev.qps[wc.QPNum]
	e := event{wc: *wc, at: c.dev.clock.Now(), q: q}
	switch {
	case q == nil:
	case c.receive(wc):
		if !q.own {
			e.q = nil
		}
		if wc.Status == rdma.StatusSuccess {
			e.at = q.arrived()
		} else {
			e.at = max(e.at, q.sink)
		}
	default:
		num := wc.ID - c.dev.ids
		s := &q.ring[num&uint64(len(q.ring)-1)]
		e.freed = num + 1
		e.wc.ID, e.at = s.id, s.at
	}
	c.dev.order++
	e.order = c.dev.order
	c.push(e)
}

// receive tells completions of receives. A failed one says nothing but its ID, and those of sends were given here.
func (c *cq) receive(wc *rdma.WC) bool {
	if wc.Status == rdma.StatusSuccess {
		return wc.Opcode.IsRecv()
	}
	return wc.ID-c.dev.ids >= sends
}

// before orders events by time, and those of one time as they came.
func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

func (c *cq) push(e event) {
	c.heap = append(c.heap, e)
	for i := len(c.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !c.heap[i].before(&c.heap[up]) {
			return
		}
		c.heap[i], c.heap[up] = c.heap[up], c.heap[i]
		i = up
	}
}

func (c *cq) pop() event {
	e := c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap = c.heap[:last]
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < last; k++ {
			if c.heap[k].before(&c.heap[least]) {
				least = k
			}
		}
		if least == i {
			return e
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
}

// Arm asks for an event. The poll between it and Wait holds nothing back, because nothing would wake who sleeps.
func (c *cq) Arm(solicitedOnly bool) error {
	world.Lock()
	defer world.Unlock()
	c.armed = true
	return c.below.Arm(solicitedOnly)
}

func (c *cq) Wait(ctx context.Context) error { return c.below.Wait(ctx) }

func (c *cq) Close() error {
	if err := c.below.Close(); err != nil {
		return err
	}
	world.Lock()
	defer world.Unlock()
	c.dev.cqs = slices.DeleteFunc(c.dev.cqs, func(o *cq) bool { return o == c })
	return nil
}
