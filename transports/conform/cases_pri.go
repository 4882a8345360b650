package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// PRI: priorities of work requests, which tiers schedule by and providers ignore.
var priCases = []Case{
	{ID: "pri/accepted", Clause: "package rdma, SendWR.Priority and Caps.Priorities", Needs: needWrite,
		Requirement: "Every priority below the declared number is taken and changes nothing about the request; a " +
			"device that declares none takes all.", Run: func(e *Env) {
			const size = 20000
			c, src, dst := e.writing(size)
			for i, p := range e.priorities() {
				src.fill(uint64(i))
				c.a.do(urgent(write(i, dst.at(0), src.all()), p))
				c.barrier()
				e.equal(fmt.Sprintf("%s after a write of priority %d", dst.name, p), dst.data(), src.data())
			}
		}},
	{ID: "pri/limit-refused", Clause: "package rdma, Caps.Priorities",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Priorities: 1},
		Requirement: "A priority beyond the declared number is refused at once, and the QP is unharmed.",
		Run: func(e *Env) {
			c, src, dst := e.writing(64)
			dst.fill(2)
			dst.freeze()
			for _, p := range []int{e.Caps.Priorities, 255} {
				if p > 255 {
					continue
				}
				_, err := c.a.tryPost(urgent(write(p, dst.at(0), src.all()), p))
				e.refusedWith(fmt.Sprintf("priority %d", p), err, rdma.ErrInvalid)
				c.a.state(rdma.QPRTS)
			}
			c.works()
			dst.unchanged("after refused requests")
		}},
	{ID: "pri/same-keeps-order", Clause: "IBTA 9.5*, 10.8.5*", Needs: needSendWrite,
		Requirement: "Requests of one priority, whatever it is, keep their order: a send delivers after the data of " +
			"an earlier write.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, p := range e.priorities() {
				for _, size := range []int{8, 3000, 150000} {
					src, dst := c.writing(size)
					for i := range e.loops(20, 500) {
						src.fill(uint64(i))
						c.b.postRecv(recv(i))
						c.a.post(urgent(write(3*i, dst.at(0), src.all()), p), urgent(send(3*i+1), p))
						c.b.r.expect(got(i, 0))
						e.equal(fmt.Sprintf("%s at the delivery of a send of priority %d", dst.name, p), dst.data(),
							src.data())
						c.a.s.expect(ok(3*i), ok(3*i+1))
					}
				}
			}
		}},
	{ID: "pri/covers-unsignaled", Clause: "IBTA 10.7.3.1", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Priorities: 2},
		Requirement: "The completion of an urgent request, too, says that unsignalled requests posted before it have " +
			"ended.", Run: func(e *Env) {
			const size = 200000
			c, src, dst := e.writing(size)
			flag := e.region(c.b, "flag", 64, remoteAll)
			for i := range e.loops(50, 1000) {
				src.fill(uint64(i))
				c.a.do(unsignaled(write(1, dst.at(0), src.all())),
					urgent(write(2, flag.at(0), src.sge(0, 64)), e.Caps.Priorities-1))
				if e.Caps.Completion != rdma.CompletionAck {
					c.barrier() // a local completion says nothing about the peer's memory
				}
				e.equal(dst.name+" at the completion of a later, more urgent write", dst.data(), src.data())
			}
		}},
	{ID: "pri/fence-holds", Clause: "IBTA 10.8.3.3",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpRead, rdma.OpWrite), Features: rdma.FeatFence, Priorities: 2},
		Requirement: "An urgent request with a fence does not overtake an earlier read.", Run: func(e *Env) {
			const size = 100000
			c, src, relay := e.reading(size)
			dst := e.region(c.b, "dst", size, remoteAll)
			for i := range e.loops(20, 500) {
				src.fill(uint64(i))
				fillByte(relay.data(), 0)
				c.a.do(read(1, src.at(0), relay.all()),
					urgent(fenced(write(2, dst.at(0), relay.all())), e.Caps.Priorities-1))
				c.barrier()
				e.equal(dst.name+" holds what the read before the fence brought", dst.data(), src.data())
			}
		}},
}

func urgent(w rdma.SendWR, p int) rdma.SendWR { w.Priority = uint8(p); return w }

// priorities are the values to try: the first, one between and the last.
func (e *Env) priorities() []int {
	if n := e.Caps.Priorities; n > 0 {
		return []int{0, n / 2, n - 1}
	}
	return []int{0, 1, 128, 255}
}

// FEN: fences.
var fenCases = []Case{
	{ID: "fen/read-then-send", Clause: "IBTA 10.8.3.3; man ibv_post_send (IBV_SEND_FENCE)", Needs: needFence,
		Requirement: "A fenced send starts only when earlier reads are done: it carries the bytes that they fetched.",
		Run: func(e *Env) {
			for _, size := range []int{8, 3000, 100000} {
				c, src, relay := e.reading(size)
				dst := e.region(c.b, "dst", size, localOnly)
				for i := range e.loops(50, 2000) {
					src.fill(uint64(i))
					fillByte(relay.data(), 0)
					c.b.postRecv(recv(i, dst.all()))
					c.a.do(read(1, src.at(0), relay.all()), fenced(send(2, relay.all())))
					c.b.r.expect(got(i, size))
					dst.holds(src.data())
				}
			}
		}},
	{ID: "fen/read-then-write", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fenced write of a read's sink writes the bytes that the read fetched.", Run: func(e *Env) {
			const size = 5000
			c, src, relay := e.reading(size)
			dst := e.region(c.b, "dst", size, remoteAll)
			for i := range e.loops(50, 2000) {
				src.fill(uint64(i))
				fillByte(relay.data(), 0)
				c.a.do(unsignaled(read(1, src.at(0), relay.all())), fenced(write(2, dst.at(0), relay.all())))
				c.barrier()
				dst.holds(src.data())
			}
		}},
	{ID: "fen/atomic-then-write", Clause: "IBTA 10.8.3.3", Needs: needFenceAdd,
		Requirement: "A fenced write of an atomic's sink writes the value that the atomic returned.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			counter := e.region(c.b, "counter", 8, atomicAll)
			relay := e.region(c.a, "relay", 8, e.sinkAccess())
			dst := e.region(c.b, "dst", 8, remoteAll)
			for i := range e.loops(100, 5000) {
				c.a.do(fetchAdd(1, counter.at(0), 3, relay.all()), fenced(write(2, dst.at(0), relay.all())))
				c.barrier()
				dst.wordIs(0, uint64(3*i), "value that the atomic returned")
			}
		}},
	{ID: "fen/nothing-outstanding", Clause: "IBTA 10.8.3.3", Needs: needFence,
		Requirement: "A fence with nothing to wait for does not hold the request.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			c.a.do(fenced(write(1, dst.at(0), src.all())))
			c.message(fenced(send(2)), recv(2))
			dst.holds(src.data())
		}},
}
