package conform

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// DTH: a peer that dies or leaves without a word.
var dthCases = []Case{
	{ID: "dth/close-in-transfer", Clause: "IBTA 9.9; RFC 5041 §6.2", Unchecked: "IBTA 9.9", Needs: needWrite,
		Requirement: "When the peer destroys its QP in mid-transfer, the requests end in error within bounded time, each once.",
		Run:         dthCloseInTransfer},
	{ID: "dth/fail-in-transfer", Clause: "IBTA 9.9; RFC 5041 §6.2", Unchecked: "IBTA 9.9", Needs: needWrite,
		Requirement: "When the peer's QP goes to ERR in mid-transfer, the requests end in error within bounded time, each once.",
		Run:         dthFailInTransfer},
	{ID: "dth/waiting-read", Clause: "IBTA 9.9; RFC 5041 §6.2", Unchecked: "IBTA 9.9", Needs: needRead,
		Requirement: "Reads towards a QP that has gone end in error, and their sinks are not touched any more.",
		Run:         dthWaitingRead},
	{ID: "dth/neighbour-unharmed", Clause: "IBTA 10.2.5; RFC 5040 §7", Unchecked: "IBTA 10.2.5", Needs: needSendWrite,
		Requirement: "The death of one connection leaves other connections of the devices alone.",
		Run:         dthNeighbour},
	{ID: "dth/listener-survives", Clause: "man rdma_listen",
		Requirement: "After connections have died the same listener takes new ones.",
		Run:         dthListener},
	{ID: "dth/kill-in-transfer", Clause: "IBTA 9.9, C9-140; RFC 5041 §6.2", Unchecked: "IBTA 9.9", Kill: true, Needs: needWrite,
		Requirement: "When the peer's device dies in mid-transfer, the requests end in error within bounded time, each once.",
		Run:         dthKill},
	{ID: "dth/kill-before-accept", Clause: "man rdma_get_cm_event", Kill: true,
		Requirement: "A connect whose listener's device dies ends in error, at its deadline at the latest.",
		Run:         dthKillBeforeAccept},
}

func dthCloseInTransfer(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 16384, localOnly)
	dst := e.region(c.b, "dst", 16384, remoteAll)
	c.untilGone(src, dst, c.b.close)
	return nil
}

func dthFailInTransfer(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 16384, localOnly)
	dst := e.region(c.b, "dst", 16384, remoteAll)
	c.untilGone(src, dst, func() { e.must("fail", c.b.qp.Fail()) })
	return nil
}

func dthWaitingRead(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.b, "src", 4096, remoteAll)
	sink := e.region(c.a, "sink", 4096, e.sinkAccess())
	src.fill(1)
	e.must("fail", c.b.qp.Fail())
	sink.freeze()
	depth := min(8, c.a.depth)
	for i := range depth {
		c.a.post(read(i, src.at(0), sink.all()))
	}
	gone := peerGone
	gone.silent = false
	c.a.s.endedBy(gone)
	sink.unchanged("by reads of a peer that has gone")
	c.a.waitState(rdma.QPErr)
	c.a.flushesLater()
	return nil
}

func dthNeighbour(_ context.Context, e *Env) error {
	boxA, boxB := e.newCQ(e.A, "cq of all a", 256), e.newCQ(e.B, "cq of all b", 256)
	o := connOpts{boxA: boxA, boxB: boxB}
	well, sick := e.connect(o), e.connect(o)
	src := e.region(sick.a, "src", 16384, localOnly)
	dst := e.region(sick.b, "dst", 16384, remoteAll)
	sick.untilGone(src, dst, sick.b.close)
	flow{n: 200, size: 1000, srcSlots: 4, dstSlots: 8}.run(well.a, well.b)
	flow{n: 200, size: 1000, srcSlots: 4, dstSlots: 8}.run(well.b, well.a)
	return nil
}

func dthListener(_ context.Context, e *Env) error {
	for i := range 6 {
		c := e.connect(connOpts{})
		c.works()
		switch i % 3 {
		case 0:
			c.b.close()
		case 1:
			e.must("fail", c.b.qp.Fail())
		case 2:
			e.must("fail", c.a.qp.Fail())
		}
	}
	e.connect(connOpts{}).works()
	return nil
}

// kill ends device b.
func (e *Env) kill() {
	e.dead = true
	e.must("kill", e.killer.Kill(e.ctx))
}

func dthKill(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 16384, localOnly)
	dst := e.region(c.b, "dst", 16384, remoteAll)
	c.a.postRecv(recv(1), recv(2))
	c.untilGone(src, dst, func() {
		c.b.sleep()
		e.kill()
	})
	return nil
}

func dthKillBeforeAccept(_ context.Context, e *Env) error {
	c := e.pair(connOpts{})
	l := e.listen()
	ctx, cancel := e.short(4 * quietTime)
	defer cancel()
	t := e.start("connect", func() error { _, err := c.a.qp.Connect(ctx, l.Addr(), e.param()); return err })
	e.pause(quietTime / 5)
	c.b.sleep()
	e.kill()
	if err := e.await(t); err == nil {
		e.failf("an error of the connect", "none")
	}
	return nil
}
