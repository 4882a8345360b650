package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// Transfers that have to succeed.

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

const blank = 0x33 // in the bytes that a transfer has to leave alone

// blank makes the data bytes that no pattern has in a row.
func (r *region) blank() { fillByte(r.data(), blank) }

// holdsOnly requires b at an offset, and blank bytes around it.
func (r *region) holdsOnly(off int, b []byte) {
	r.e.allBytes(r.name+": bytes before", r.data()[:off], blank)
	r.e.equal(r.name, r.data()[off:off+len(b)], b)
	r.e.allBytes(r.name+": bytes behind", r.data()[off+len(b):], blank)
}

// doEach posts n requests one by one, as the queue has room, and requires the success of each.
func (x *end) doEach(n int, request func(i int) rdma.SendWR) {
	for i := range n {
		x.push(request(i))
	}
	x.s.expectOK(0, n)
}

// expectGot requires receives 0 to n-1, each with a plain message of size bytes.
func (q *workQueue) expectGot(n, size int) {
	for i := range n {
		q.expect(got(i, size))
	}
}

// bothWays writes near to far, and reads other bytes of far back.
func (c *conn) bothWays(near, far *region) {
	near.fill(1)
	c.writes(near, far)
	far.fill(2)
	c.reads(far, near)
}

// wakes posts a request that has to raise the event of b, whose CQ is armed.
func (c *conn) wakes(wr rdma.SendWR, why string) {
	c.a.post(wr)
	c.e.expectWake(c.b.box, why)
	c.a.s.expect(want{id: wr.ID})
}
