package conform

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// connOpts shape a connection; zero is 16 work requests each way, a CQ a side, up to 4 reads outstanding.
type connOpts struct {
	depth, rdepth int // work requests; 0 means 16, -1 the device's default
	cqDepth       int // 0: room for everything outstanding
	inline        int
	sigAll        bool
	access        rdma.Access // of QP b
	param, accept *rdma.ConnParam
	srq           *sharedQueue // of QP b
	pdA, pdB      rdma.PD
	boxA, boxB    *cqBox // an existing CQ instead of a new one
	noHello       bool
	// ready runs before the connection exists: receives that are posted in INIT.
	ready func(c *conn)
}

// conn is a connection: a initiates, b accepts.
type conn struct {
	e        *Env
	a, b     *end
	pa, pb   rdma.ConnParam // as negotiated
	asked    rdma.ConnParam // as b saw the request
	fromAddr string
}

func (e *Env) reads() int     { return min(4, e.Caps.MaxRDAtom) }
func (e *Env) deep(n int) int { return min(n, e.Caps.MaxQPWR) }

func (e *Env) newCQ(dev rdma.Device, name string, depth int) *cqBox {
	cq, err := dev.NewCQ(depth)
	e.must(fmt.Sprintf("create cq of %d", depth), err)
	b := &cqBox{e: e, name: name, cq: cq}
	e.boxes = append(e.boxes, b)
	e.onClose(rankCQ, dev, name, func() error { b.closed = true; return cq.Close() })
	return b
}

func (e *Env) newEnd(dev rdma.Device, name string, o connOpts, box *cqBox, srq *sharedQueue, pd rdma.PD,
	access rdma.Access) *end {
	depth, rdepth := cmp.Or(o.depth, e.deep(16)), cmp.Or(o.rdepth, e.deep(16))
	if box == nil {
		recvs := rdepth
		if srq != nil {
			recvs = e.Caps.MaxSRQWR
		}
		box = e.newCQ(dev, "cq of "+name, cmp.Or(o.cqDepth, min(depth+recvs, e.Caps.MaxCQE)))
	}
	cfg := rdma.QPConfig{PD: pd, SendCQ: box.cq, RecvCQ: box.cq, SendDepth: max(depth, 0), RecvDepth: max(rdepth, 0),
		MaxInline: o.inline, SigAll: o.sigAll, Access: access}
	if srq != nil {
		cfg.SRQ = srq.srq
	}
	qp, err := dev.NewQP(cfg)
	e.must("create qp "+name, err)
	x := e.endOf(dev, name, qp, box, depth)
	x.pd, x.sigAll = pd, o.sigAll
	if srq != nil {
		x.srq, x.r.shared = srq, srq.open
	}
	return x
}

func (e *Env) idleEnd(name string) *end { return e.newEnd(e.A, name, connOpts{}, nil, nil, 0, 0) }

func (e *Env) endOf(dev rdma.Device, name string, qp rdma.QP, box *cqBox, depth int) *end {
	x := &end{e: e, name: name, dev: dev, qp: qp, num: qp.Num(), box: box, depth: depth}
	x.s = &workQueue{e: e, end: x, name: name + " send queue"}
	x.r = &workQueue{e: e, end: x, name: name + " receive queue"}
	box.ends = append(box.ends, x)
	e.onClose(rankQP, dev, "qp "+name, qp.Close)
	return x
}

func (e *Env) pair(o connOpts) *conn {
	suffix := ""
	if n := len(e.conns); n > 0 {
		suffix = fmt.Sprint(n + 1)
	}
	c := &conn{e: e}
	c.a = e.newEnd(e.A, "a"+suffix, o, o.boxA, nil, o.pdA, 0)
	c.b = e.newEnd(e.B, "b"+suffix, o, o.boxB, o.srq, o.pdB, o.access)
	e.conns = append(e.conns, c)
	return c
}

func (e *Env) listen() rdma.Listener {
	if e.listener == nil {
		e.listener = e.newListener(16)
	}
	return e.listener
}

func (e *Env) param() rdma.ConnParam {
	return rdma.ConnParam{IRD: e.reads(), ORD: e.reads(), RNRRetry: 7}
}

func (e *Env) connect(o connOpts) *conn {
	c := e.pair(o)
	c.join(o)
	return c
}

// join sends a message from a to b: an iWARP responder may not send before it received (RFC 5044 §7.1.2).
func (c *conn) join(o connOpts) {
	e := c.e
	if !o.noHello {
		c.b.recvAnywhere(recv(helloID))
	}
	if o.ready != nil {
		o.ready(c)
	}
	e.must("connect", c.meet(e.ctx, o))
	for _, x := range []*end{c.a, c.b} {
		x.state(rdma.QPRTS)
	}
	if !o.noHello {
		c.a.post(send(helloID))
		c.a.s.expect(ok(helloID))
		c.b.r.expect(got(helloID, 0))
	}
}

func (c *conn) meet(ctx context.Context, o connOpts) error {
	e, l := c.e, c.e.listen()
	pa, pb := e.param(), e.param()
	if o.param != nil {
		pa = *o.param
	}
	if o.accept != nil {
		pb = *o.accept
	}
	acc := e.start("accept", func() error {
		req, err := l.Accept(ctx)
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		c.asked, c.fromAddr = req.Param(), req.RemoteAddr()
		c.pb, err = req.Accept(ctx, c.b.qp, pb)
		return err
	})
	con := e.start("connect", func() (err error) {
		c.pa, err = c.a.qp.Connect(ctx, l.Addr(), pa)
		return err
	})
	if err := e.await(con); err != nil {
		return err
	}
	return e.await(acc)
}

func (x *end) recvAnywhere(wr rdma.RecvWR) {
	if x.srq != nil {
		x.srq.post(wr)
		return
	}
	x.postRecv(wr)
}

// barrier returns when all that a sent has taken effect: a later message has arrived (RFC 5040 §5.5).
func (c *conn) barrier() { c.barrierFrom(c.a, c.b) }

// barrierFrom is barrier from x to y, where no receives may be posted yet.
func (c *conn) barrierFrom(x, y *end) {
	y.recvAnywhere(recv(barrierID))
	x.post(send(barrierID))
	x.s.expect(ok(barrierID))
	y.r.expect(got(barrierID, 0))
}

// readBarrier is for a peer that does not poll: a read is served behind earlier writes (RFC 5040 §5.5).
func (c *conn) readBarrier(of *region, sink *region) {
	c.a.post(read(barrierID, of.at(0), sink.sge(0, 1)))
	c.a.s.expect(ok(barrierID))
}

func (c *conn) works() {
	c.barrierFrom(c.a, c.b)
	c.barrierFrom(c.b, c.a)
}
