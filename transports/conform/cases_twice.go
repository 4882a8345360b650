package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// otherEnds moves more than a stream takes at once, and ends other registrations of that memory
// on both sides meanwhile.
func (e *Env) otherEnds(c *conn) {
	const n, writes = 1 << 20, 8
	from, to := e.region(c.a, "long", n, localOnly), e.region(c.b, "long", n, remoteAll)
	var others []rdma.MR
	for x, r := range map[*end]*region{c.a: from, c.b: to} {
		mr, err := x.dev.RegMR(x.pd, r.buf, localOnly)
		e.must("register the same memory again", err)
		e.onClose(rankMR, x.dev, "other registration", mr.Close)
		others = append(others, mr)
	}
	from.fill(3)
	for i := range writes {
		c.a.post(write(100+i, to.at(0), from.all()))
	}
	for _, mr := range others {
		e.must("close the other registration", mr.Close())
	}
	for i := range writes {
		c.a.s.expect(ok(100 + i))
	}
	c.barrier()
	e.equal(to.name, to.data(), from.data())
}
