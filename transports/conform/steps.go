package conform

import (
	"context"
	"io"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What most cases do: a few regions on a connection, and transfers that succeed or are refused.

// writing makes n bytes of a, filled, and n bytes of b that a may write and read.
func (c *conn) writing(n int) (src, dst *region) {
	src, dst = c.e.region(c.a, "src", n, localOnly), c.e.region(c.b, "dst", n, remoteAll)
	src.fill(1)
	return src, dst
}

// sending makes n bytes of a, filled, and n bytes of b for receives.
func (c *conn) sending(n int) (src, dst *region) {
	src, dst = c.e.region(c.a, "src", n, localOnly), c.e.region(c.b, "dst", n, localOnly)
	src.fill(1)
	return src, dst
}

// reading makes n bytes of b, filled, and n bytes of a that take what is read.
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

// do posts requests as one list, and requires the success of each that is signalled.
func (x *end) do(wrs ...rdma.SendWR) {
	x.post(wrs...)
	for i := range wrs {
		if wrs[i].Flags&rdma.Signaled != 0 || x.sigAll {
			x.s.expect(want{id: wrs[i].ID})
		}
	}
}

// message sends s from a into the receive r of b.
func (c *conn) message(s rdma.SendWR, r rdma.RecvWR) {
	c.b.postRecv(r)
	c.a.do(s)
	c.b.r.expect(arrival(r.ID, s))
}

// arrival is the completion of a receive that takes s.
func arrival(id uint64, s rdma.SendWR) want {
	w := want{id: id, op: rdma.WCRecv, bytes: uint32(s.Len())}
	switch s.Op {
	case rdma.OpSendImm:
		return w.withImm(s.Imm)
	case rdma.OpSendInv:
		return w.withInv(s.InvKey)
	case rdma.OpWriteImm:
		return w.byWrite().withImm(s.Imm)
	}
	return w
}

// writes writes all of src to dst, and compares.
func (c *conn) writes(src, dst *region) {
	c.a.do(write(1, dst.at(0), src.all()))
	c.barrier()
	dst.holds(src.data())
}

// reads reads all of src into sink, and compares.
func (c *conn) reads(src, sink *region) {
	c.a.do(read(1, src.at(0), sink.all()))
	sink.holds(src.data())
}

// sends sends all of src into dst, and compares.
func (c *conn) sends(src, dst *region) {
	c.message(send(1, src.all()), recv(1, dst.all()))
	dst.holds(src.data())
}

// noEffect requires the peer to refuse a request of a, and the regions to stay as they are.
func (c *conn) noEffect(o outcome, wr rdma.SendWR, kept ...*region) {
	for _, r := range kept {
		r.freeze()
	}
	c.refuses(c.a, o, wr)
	for _, r := range kept {
		r.unchanged("by a refused " + wr.Op.String())
	}
}

// localFault requires a to end or refuse a request, as [end.localFault] has it, and the
// region to stay as it is. A QP that is still in RTS works.
func (c *conn) localFault(wr rdma.SendWR, kept *region, also ...rdma.Status) {
	kept.freeze()
	if c.a.localFault(wr, also...) {
		c.works()
	}
	kept.unchanged("by a request that is wrong at its source")
}

// close destroys both QPs.
func (c *conn) close() {
	c.a.close()
	c.b.close()
}

// connecting connects a while the case goes on.
func (c *conn) connecting(ctx context.Context) *task {
	addr := c.e.listen().Addr()
	return c.e.start("connect", func() error {
		_, err := c.a.qp.Connect(ctx, addr, c.e.param())
		return err
	})
}

// disconnect ends the connection from this side.
func (x *end) disconnect() {
	x.e.must("disconnect", x.e.beside("disconnect", func() error { return x.qp.Disconnect(x.e.ctx) }))
}

// connectWith is connect with the same parameters at both ends.
func (e *Env) connectWith(p rdma.ConnParam, o connOpts) *conn {
	o.param, o.accept = &p, &p
	return e.connect(o)
}

// newPD allocates a protection domain that lives as long as the case.
func (e *Env) newPD(dev rdma.Device) rdma.PD {
	pd, err := dev.AllocPD()
	e.must("allocate pd", err)
	e.onClose(rankPD, dev, "pd", func() error { return dev.FreePD(pd) })
	return pd
}

// notCreated takes the results of a call that has to fail with one of the errors.
func (e *Env) notCreated(what string, want ...error) func(io.Closer, error) {
	return func(o io.Closer, err error) {
		if err == nil {
			e.must("close what was created", o.Close())
		}
		e.refusedWith(what, err, want...)
	}
}

// other is the other end of the connection.
func (c *conn) other(x *end) *end {
	if x == c.a {
		return c.b
	}
	return c.a
}

// badKey is the first byte of a region under a key of none.
func (r *region) badKey() target {
	t := r.at(0)
	t.key ^= 0x5a5a5a5a
	return t
}

const blank = 0x33 // in the bytes that a transfer has to leave alone

// blank makes the data bytes that no pattern has in a row.
func (r *region) blank() { fillByte(r.data(), blank) }

// holdsOnly requires b at an offset, and blank bytes around it.
func (r *region) holdsOnly(off int, b []byte) {
	r.e.allBytes(r.name+": bytes before", r.data()[:off], blank)
	r.e.equal(r.name, r.data()[off:off+len(b)], b)
	r.e.allBytes(r.name+": bytes behind", r.data()[off+len(b):], blank)
}

// sharedCQs connects two pairs of QPs whose ends share one CQ on each side.
func (e *Env) sharedCQs(depth int, o connOpts) (c1, c2 *conn) {
	o.boxA, o.boxB = e.newCQ(e.A, "cq of both a", depth), e.newCQ(e.B, "cq of both b", depth)
	return e.connect(o), e.connect(o)
}

// register makes a registration that lives as long as the case.
func (e *Env) register(dev rdma.Device, pd rdma.PD, buf rdma.Buffer, access rdma.Access) rdma.MR {
	mr, err := dev.RegMR(pd, buf, access)
	e.must("register", err)
	e.onClose(rankMR, dev, "registration", mr.Close)
	return mr
}

// oneSided is a write and a read, and the Terminate codes of their refusal.
func oneSided(writeCode, readCode uint32) []oneSidedOp {
	return []oneSidedOp{{write, accessRefused(writeCode)}, {read, accessRefused(readCode)}}
}

type oneSidedOp struct {
	build   func(n int, t target, g ...rdma.SGE) rdma.SendWR
	refused outcome
}

// receiveFails sends src into a receive of b that is at fault, which leaves dst alone.
func (c *conn) receiveFails(src, dst *region) {
	dst.freeze()
	c.refusal(c.a, workRefused(), send(1, src.all()))
	c.b.r.expect(recvFails(1, c.either(rdma.StatusLocProtErr, rdma.StatusLocAccessErr)...))
	c.dead()
	dst.unchanged("by a receive at fault")
}

// doEach posts n requests one by one, as the queue has room, and requires the success of each.
func (x *end) doEach(n int, request func(i int) rdma.SendWR) {
	for i := range n {
		x.push(request(i))
	}
	x.s.expectOK(0, n)
}

// recvSlots posts n receives of size bytes each, one behind the other in r.
func (x *end) recvSlots(n int, r *region, size int) {
	for i := range n {
		x.postRecv(recv(i, r.sge(i*size, size)))
	}
}

// expectGot requires receives 0 to n-1, each with a plain message of size bytes.
func (q *workQueue) expectGot(n, size int) {
	for i := range n {
		q.expect(got(i, size))
	}
}

// part is n bytes of a region from off on, under the same registration.
func (r *region) part(off, n int) *region {
	p := *r
	p.lo, p.n = r.lo+off, n
	return &p
}

// request waits for a connection request at the case's listener.
func (e *Env) request() rdma.ConnRequest {
	req, err := e.listen().Accept(e.ctx)
	e.must("accept", err)
	return req
}

// accepts answers a request with b.
func (c *conn) accepts(req rdma.ConnRequest) {
	e := c.e
	e.must("accept", e.beside("accept", func() error { _, err := req.Accept(e.ctx, c.b.qp, e.param()); return err }))
}

// newListener listens at the address of b, until the case ends at the latest.
func (e *Env) newListener(backlog int) rdma.Listener {
	l, err := e.B.Listen(e.ctx, e.ListenAddr, backlog)
	e.must("listen at "+e.ListenAddr, err)
	e.onClose(rankListener, e.B, "listener", l.Close)
	return l
}

// within requires that no more than limit has passed since start.
func (e *Env) within(limit time.Duration, start time.Time, what string) {
	if d := time.Since(start); d > limit {
		e.failf(what, "after %v", d.Round(time.Millisecond))
	}
}

// bothWays writes near to far, and reads other bytes of far back.
func (c *conn) bothWays(near, far *region) {
	near.fill(1)
	c.writes(near, far)
	far.fill(2)
	c.reads(far, near)
}

// silent requires that no completion comes while the case polls for d.
func (q *workQueue) silent(d time.Duration, what string) {
	q.e.pause(d)
	if len(q.done) > 0 {
		q.e.failf(what, "%s", q.text(&q.done[0]))
	}
}

// wakes posts a request that has to raise the event of b, whose CQ is armed.
func (c *conn) wakes(wr rdma.SendWR, why string) {
	c.a.post(wr)
	c.e.expectWake(c.b.box, why)
	c.a.s.expect(want{id: wr.ID})
}

// withSRQ connects QPs of which b has an SRQ of a depth, or of the device's limit.
func (e *Env) withSRQ(depth int) (*sharedQueue, *conn) {
	srq := e.newSRQ(0, min(depth, e.Caps.MaxSRQWR))
	return srq, e.connect(connOpts{srq: srq})
}
