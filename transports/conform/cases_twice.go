package conform

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func accTwoRegistrations(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	near := e.region(c.a, "near", 64, e.sinkAccess())
	far := e.region(c.b, "far", 64, rdma.RemoteRead)
	second, err := c.b.dev.RegMR(c.b.pd, far.buf, localOnly|rdma.RemoteWrite)
	e.must("register the same memory again", err)
	e.onClose(rankMR, c.b.dev, "second registration", second.Close)
	near.fill(1)
	writable := target{far.at(0).addr, second.RKey()}
	c.a.post(write(1, writable, near.all()))
	c.a.s.expect(ok(1))
	c.barrier()
	e.equal(far.name, far.data(), near.data())
	fillByte(near.data(), 0)
	c.a.post(read(2, far.at(0), near.all()))
	c.a.s.expect(ok(2))
	e.equal(near.name, near.data(), far.data())
	// The end of one is not the end of the other.
	e.must("close second registration", second.Close())
	e.otherEnds(c)
	c.a.post(read(3, far.at(0), near.all()))
	c.a.s.expect(ok(3))
	far.freeze()
	near.fill(2)
	c.refuses(c.a, accessRefused(0x0102), write(4, far.at(0), near.all()))
	far.unchanged("under the registration without remote write")
	return nil
}

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
