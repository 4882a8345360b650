package conform

import (
	"context"
	"io"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Regions, connections and objects that most cases begin with.

func (c *conn) writing(n int) (src, dst *region) {
	src, dst = c.e.region(c.a, "src", n, localOnly), c.e.region(c.b, "dst", n, remoteAll)
	src.fill(1)
	return src, dst
}

func (c *conn) sending(n int) (src, dst *region) {
	src, dst = c.e.region(c.a, "src", n, localOnly), c.e.region(c.b, "dst", n, localOnly)
	src.fill(1)
	return src, dst
}

func (c *conn) reading(n int) (src, sink *region) {
	src, sink = c.e.region(c.b, "src", n, remoteAll), c.e.region(c.a, "sink", n, c.e.sinkAccess())
	src.fill(1)
	return src, sink
}

// nearFar makes n bytes of a for any request, and n bytes of b, both filled and frozen.
func (c *conn) nearFar(n int, access rdma.Access) (near, far *region) {
	near, far = c.e.region(c.a, "near", n, c.e.sinkAccess()), c.e.region(c.b, "far", n, access)
	near.fill(1)
	far.fill(2)
	near.freeze()
	far.freeze()
	return near, far
}

func (e *Env) writing(n int) (c *conn, src, dst *region) {
	c = e.connect(connOpts{})
	src, dst = c.writing(n)
	return c, src, dst
}

func (e *Env) sending(n int) (c *conn, src, dst *region) {
	c = e.connect(connOpts{})
	src, dst = c.sending(n)
	return c, src, dst
}

func (e *Env) reading(n int) (c *conn, src, sink *region) {
	c = e.connect(connOpts{})
	src, sink = c.reading(n)
	return c, src, sink
}

func (c *conn) close() {
	c.a.close()
	c.b.close()
}

func (c *conn) connecting(ctx context.Context) *task {
	addr := c.e.listen().Addr()
	return c.e.start("connect", func() error {
		_, err := c.a.qp.Connect(ctx, addr, c.e.param())
		return err
	})
}

func (x *end) disconnect() {
	x.e.must("disconnect", x.e.beside("disconnect", func() error { return x.qp.Disconnect(x.e.ctx) }))
}

func (e *Env) connectWith(p rdma.ConnParam, o connOpts) *conn {
	o.param, o.accept = &p, &p
	return e.connect(o)
}

func (e *Env) newPD(dev rdma.Device) rdma.PD {
	pd, err := dev.AllocPD()
	e.must("allocate pd", err)
	e.onClose(rankPD, dev, "pd", func() error { return dev.FreePD(pd) })
	return pd
}

func (c *conn) other(x *end) *end {
	if x == c.a {
		return c.b
	}
	return c.a
}

func (e *Env) sharedCQs(depth int, o connOpts) (c1, c2 *conn) {
	o.boxA, o.boxB = e.newCQ(e.A, "cq of both a", depth), e.newCQ(e.B, "cq of both b", depth)
	return e.connect(o), e.connect(o)
}

func (e *Env) register(dev rdma.Device, pd rdma.PD, buf rdma.Buffer, access rdma.Access) rdma.MR {
	mr, err := dev.RegMR(pd, buf, access)
	e.must("register", err)
	e.onClose(rankMR, dev, "registration", mr.Close)
	return mr
}

func (x *end) recvSlots(n int, r *region, size int) {
	for i := range n {
		x.postRecv(recv(i, r.sge(i*size, size)))
	}
}

func (r *region) part(off, n int) *region {
	p := *r
	p.lo, p.n = r.lo+off, n
	return &p
}

func (e *Env) request() rdma.ConnRequest {
	req, err := e.listen().Accept(e.ctx)
	e.must("accept", err)
	return req
}

func (c *conn) accepts(req rdma.ConnRequest) {
	e := c.e
	e.must("accept", e.beside("accept", func() error { _, err := req.Accept(e.ctx, c.b.qp, e.param()); return err }))
}

func (e *Env) newListener(backlog int) rdma.Listener {
	l, err := e.B.Listen(e.ctx, e.ListenAddr, backlog)
	e.must("listen at "+e.ListenAddr, err)
	e.onClose(rankListener, e.B, "listener", l.Close)
	return l
}

func (e *Env) withSRQ(depth int) (*sharedQueue, *conn) {
	srq := e.newSRQ(0, min(depth, e.Caps.MaxSRQWR))
	return srq, e.connect(connOpts{srq: srq})
}

// Requests and calls that have to fail, and what must not happen.

func (c *conn) noEffect(o outcome, wr rdma.SendWR, kept ...*region) {
	for _, r := range kept {
		r.freeze()
	}
	c.refuses(c.a, o, wr)
	for _, r := range kept {
		r.unchanged("by a refused " + wr.Op.String())
	}
}

// localFault requires what [end.localFault] does, and the region to stay as it is.
func (c *conn) localFault(wr rdma.SendWR, kept *region, also ...rdma.Status) {
	kept.freeze()
	if c.a.localFault(wr, also...) {
		c.works()
	}
	kept.unchanged("by a request that is wrong at its source")
}

func (e *Env) notCreated(what string, want ...error) func(io.Closer, error) {
	return func(o io.Closer, err error) {
		if err == nil {
			e.must("close what was created", o.Close())
		}
		e.refusedWith(what, err, want...)
	}
}

func (r *region) badKey() target {
	t := r.at(0)
	t.key ^= 0x5a5a5a5a
	return t
}

// oneSided is a write and a read, and the Terminate codes of their refusal.
func oneSided(writeCode, readCode uint32) []oneSidedOp {
	return []oneSidedOp{{write, accessRefused(writeCode)}, {read, accessRefused(readCode)}}
}

type oneSidedOp struct {
	build   func(n int, t target, g ...rdma.SGE) rdma.SendWR
	refused outcome
}

func (c *conn) receiveFails(src, dst *region) {
	dst.freeze()
	c.refusal(c.a, workRefused(), send(1, src.all()))
	c.b.r.expect(recvFails(1, c.either(rdma.StatusLocProtErr, rdma.StatusLocAccessErr)...))
	c.dead()
	dst.unchanged("by a receive at fault")
}

func (e *Env) within(limit time.Duration, start time.Time, what string) {
	if d := time.Since(start); d > limit {
		e.failf(what, "after %v", d.Round(time.Millisecond))
	}
}

func (q *workQueue) silent(what string) {
	q.e.pause(quietTime)
	if len(q.done) > 0 {
		q.e.failf(what, "%s", q.text(&q.done[0]))
	}
}
