package conform

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// QPS: the state machine of a queue pair.
var qpsCases = []Case{
	{ID: "qps/starts-in-init", Clause: "IBTA 10.3.1*; man ibv_modify_qp",
		Requirement: "A new QP is in INIT; both ends of a connection that is set up are in RTS.", Run: func(e *Env) {
			c := e.pair(connOpts{})
			c.a.state(rdma.QPInit)
			c.b.state(rdma.QPInit)
			c.join(connOpts{}) // requires RTS at both ends
		}},
	{ID: "qps/forbidden-edges", Clause: "IBTA 10.3.1*; man ibv_modify_qp",
		Requirement: "An edge that the transition table lacks is refused and the state is unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			// RTS to RTR: a second connect.
			_, err := c.a.qp.Connect(e.short(soon), e.listen().Addr(), e.param())
			e.refusedWith("connect in RTS", err, rdma.ErrState, rdma.ErrInvalid)
			c.a.state(rdma.QPRTS)
			c.works()
			// ERR to RTR.
			e.must("fail", c.a.qp.Fail())
			_, err = c.a.qp.Connect(e.short(soon), e.listen().Addr(), e.param())
			e.refusedWith("connect in ERR", err, rdma.ErrState, rdma.ErrInvalid)
			c.a.state(rdma.QPErr)
			if !e.Caps.Features.Has(rdma.FeatSQD) {
				return
			}
			idle := e.idleEnd("idle")
			e.refusedWith("drain in INIT", idle.qp.Drain(), rdma.ErrState, rdma.ErrInvalid)
			e.refusedWith("resume in INIT", idle.qp.Resume(), rdma.ErrState, rdma.ErrInvalid)
			idle.state(rdma.QPInit)
			e.refusedWith("drain in ERR", c.a.qp.Drain(), rdma.ErrState, rdma.ErrInvalid)
			c.a.state(rdma.QPErr)
		}},
	{ID: "qps/send-before-connect", Clause: "IBTA C10-96", Level: Should,
		Requirement: "A send posted in RESET, INIT or RTR is refused at once and the QP is unchanged.",
		Run: func(e *Env) {
			c := e.pair(connOpts{})
			_, err := c.a.tryPost(send(1))
			e.refusedWith("send in INIT", err, rdma.ErrState, rdma.ErrInvalid)
			c.a.state(rdma.QPInit)
			c.join(connOpts{})
			c.works()
		}},
	{ID: "qps/recv-in-init", Clause: "IBTA 10.3.1*; man ibv_post_recv",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSend)},
		Requirement: "Receives posted in INIT are consumed by messages that arrive after the connection is set up.",
		Run: func(e *Env) {
			o := connOpts{noHello: true}
			o.ready = func(c *conn) {
				for i := range 4 {
					c.b.postRecv(recv(i))
					c.a.postRecv(recv(i))
				}
				c.b.state(rdma.QPInit)
			}
			c := e.connect(o)
			for _, x := range []*end{c.a, c.b} {
				x.doEach(4, func(i int) rdma.SendWR { return send(i) })
				c.other(x).r.expectGot(4, 0)
			}
		}},
	{ID: "qps/fail-anywhere", Clause: "IBTA 10.3.1*; man ibv_modify_qp",
		Requirement: "Any state may go to ERR, and ERR is left only by destruction.", Run: func(e *Env) {
			idle := e.idleEnd("idle")
			idle.postRecv(recv(1), recv(2))
			e.must("fail in INIT", idle.qp.Fail())
			idle.state(rdma.QPErr)
			idle.r.expect(recvFails(1, rdma.StatusWRFlushErr), recvFails(2, rdma.StatusWRFlushErr))

			c := e.connect(connOpts{})
			e.must("fail in RTS", c.a.qp.Fail())
			c.a.state(rdma.QPErr)
			e.must("fail in ERR", c.a.qp.Fail())
			c.a.state(rdma.QPErr)
			if e.Caps.Features.Has(rdma.FeatSQD) {
				if err := c.a.qp.Resume(); err == nil || errors.Is(err, rdma.ErrNotSupported) {
					e.failf("resume in ERR refused", "%v", err)
				}
				c.a.state(rdma.QPErr)
			}
		}},
	{ID: "qps/post-in-err", Clause: "IBTA 10.3.1.7*, C10-96, C10-97",
		Requirement: "Work posted in ERR is taken and completes with WR_FLUSH_ERR, in order.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			e.must("fail", c.a.qp.Fail())
			c.a.state(rdma.QPErr)
			for i := range 4 {
				c.a.post(send(i), send(100+i))
				c.a.postRecv(recv(i), recv(100+i))
				c.a.s.expect(sendFails(i, rdma.StatusWRFlushErr), sendFails(100+i, rdma.StatusWRFlushErr))
				c.a.r.expect(recvFails(i, rdma.StatusWRFlushErr), recvFails(100+i, rdma.StatusWRFlushErr))
			}
			// An error completes whatever the flags say (IBTA 10.7.3.1).
			c.a.post(unsignaled(send(200)))
			c.a.s.expect(sendFails(200, rdma.StatusWRFlushErr))
		}},
	{ID: "qps/drain-resume", Clause: "IBTA 10.3.1.5*; man ibv_modify_qp",
		Needs: rdma.Need{Features: rdma.FeatSQD}, Requirement: "In SQD new sends are held; back in RTS they are sent.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.postRecv(recv(1), recv(2))
			c.a.do(send(1))
			c.b.r.expect(got(1, 0))

			e.must("drain", c.a.qp.Drain())
			c.a.waitState(rdma.QPSQD)
			if e.Caps.Features.Has(rdma.FeatAsyncEvents) {
				e.expectEvent(e.A, rdma.EventSQDrained, c.a.num)
			}
			c.a.post(send(2))
			e.pause(quietTime)
			if len(c.a.s.done) > 0 || len(c.b.r.done) > 0 {
				e.failf("a send posted in SQD is held", "it was sent")
			}
			// The other direction goes on.
			c.a.postRecv(recv(3))
			c.b.do(send(3))
			c.a.r.expect(got(3, 0))

			e.must("resume", c.a.qp.Resume())
			c.a.waitState(rdma.QPRTS)
			c.a.s.expect(ok(2))
			c.b.r.expect(got(2, 0))
		}},
	{ID: "qps/close-outstanding", Clause: "IBTA 11.2.4.4*; man ibv_destroy_qp",
		Requirement: "A QP can be destroyed in every state; what was outstanding has completed flushed when the call " +
			"returns.", Run: func(e *Env) {
			const n = 8
			closeWith := func(where string, x *end, s rdma.QPState) {
				for i := range n {
					x.postRecv(recv(i))
				}
				x.state(s)
				x.close()
				// Before Close returns: one look, without waiting, finds them all.
				for e.step() {
				}
				if left := x.r.signaled(); left > 0 {
					e.failf(fmt.Sprintf("%d receives flushed when close in %s returns", n, where),
						"%d still outstanding", left)
				}
				x.r.flushed(true)
			}
			closeWith("INIT", e.idleEnd("idle"), rdma.QPInit)
			c := e.connect(connOpts{})
			closeWith("RTS", c.a, rdma.QPRTS)
			c2 := e.connect(connOpts{})
			e.must("fail", c2.a.qp.Fail())
			closeWith("ERR", c2.a, rdma.QPErr)
			if e.Caps.Features.Has(rdma.FeatSQD) {
				c3 := e.connect(connOpts{})
				e.must("drain", c3.a.qp.Drain())
				c3.a.waitState(rdma.QPSQD)
				c3.a.post(send(1), send(2))
				closeWith("SQD", c3.a, rdma.QPSQD)
				c3.a.s.flushed(true)
			}
		}},
	{ID: "qps/cq-busy", Clause: "IBTA C11-17; man ibv_destroy_cq",
		Requirement: "A CQ that a QP uses cannot be destroyed and stays usable.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			e.refusedWith("close a cq in use", c.a.box.cq.Close(), rdma.ErrBusy)
			e.refusedWith("close a cq in use", c.b.box.cq.Close(), rdma.ErrBusy)
			c.works()
		}},
	{ID: "qps/numbers", Clause: "man ibv_poll_cq (qp_num)",
		Requirement: "Live QPs of a device have different numbers, and completions carry the number of their QP.",
		Run: func(e *Env) {
			const n = 8
			boxA, boxB := e.newCQ(e.A, "cq of all a", 64*n), e.newCQ(e.B, "cq of all b", 64*n)
			seen := map[uint32]bool{}
			for range n {
				c := e.connect(connOpts{boxA: boxA, boxB: boxB})
				if seen[c.a.num] {
					e.failf("a number for every live qp", "%d twice", c.a.num)
				}
				seen[c.a.num] = true
				if c.a.qp.Num() != c.a.num {
					e.failf("the same number at every query", "%d, then %d", c.a.num, c.a.qp.Num())
				}
			}
			// The filing of completions checks qp_num: a wrong one ends the case.
			for range 3 {
				for _, c := range e.conns {
					c.works()
				}
			}
		}},
	{ID: "qps/independent", Clause: "IBTA 10.2.5*; RFC 5040 §7",
		Requirement: "A QP that fails does no harm to another QP on the same device and the same CQ.",
		Run: func(e *Env) {
			sick, well := e.sharedCQs(256, connOpts{})
			well.works()
			e.must("fail", sick.a.qp.Fail())
			well.works()
			sick.b.postRecv(recv(1), recv(2))
			sick.b.close()
			sick.b.r.flushed(true)
			well.works()
			flow{n: 64, size: 100, srcSlots: 4, dstSlots: 8}.run(well.a, well.b)
		}},
}
