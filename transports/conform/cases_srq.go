package conform

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// SRQ: shared receive queues.
var srqCases = []Case{
	{ID: "srq/shared-each-once", Clause: "IBTA 10.2.9*; man ibv_create_srq", Needs: needSRQ,
		Requirement: "QPs share the receives of an SRQ: every one is consumed once, and its completion names the QP " +
			"that took it.", Run: func(e *Env) {
			const qps, size, slots = 4, 64, 64
			depth := min(slots, e.Caps.MaxSRQWR)
			srq := e.newSRQ(0, depth)
			boxB := e.newCQ(e.B, "cq of all b", min(qps*depth+64, e.Caps.MaxCQE))
			var conns []*conn
			for range qps {
				conns = append(conns, e.connect(connOpts{srq: srq, boxB: boxB}))
			}
			src, dst := conns[0].sending(max(qps, depth) * size)
			post := func(slot int) { srq.post(recv(slot, dst.sge(slot*size, size))) }
			for i := range depth {
				post(i)
			}
			n := e.loops(2000, 20000)
			sent, taken, inFlight := 0, 0, 0
			seqs := make([]int, qps)     // messages of each QP so far
			arrivals := make([]int, qps) // and how many of them arrived
			for taken < n {
				for sent < n && inFlight < depth {
					k := sent % qps
					if len(conns[k].a.s.open)+len(conns[k].a.s.done) > 0 {
						break // the buffer of this QP is not ours yet
					}
					pattern(src.data()[k*size:k*size+size], uint64(k)<<32+uint64(seqs[k]))
					conns[k].a.post(send(seqs[k], src.sge(k*size, size)))
					seqs[k]++
					sent++
					inFlight++
				}
				e.wait(func() string { return fmt.Sprintf("message %d of %d through the srq", taken, n) }, func() bool {
					return slices.ContainsFunc(conns, func(c *conn) bool { return len(c.a.s.done)+len(c.b.r.done) > 0 })
				})
				for k, c := range conns {
					for len(c.a.s.done) > 0 {
						c.a.s.expect(ok(seqs[k] - 1))
					}
					for len(c.b.r.done) > 0 {
						// file has checked that this receive was outstanding and is taken once.
						wc := c.b.r.next("receive")
						slot := int(uint32(wc.ID))
						c.b.r.judge(want{id: wc.ID, op: rdma.WCRecv, bytes: size}, &wc)
						e.equal(fmt.Sprintf("message %d of qp %d", arrivals[k], c.b.num),
							dst.data()[slot*size:slot*size+size], patternOf(size, uint64(k)<<32+uint64(arrivals[k])))
						arrivals[k]++
						taken++
						inFlight--
						post(slot)
					}
				}
			}
			// The acknowledgement of a message may come later than the message.
			for k, c := range conns {
				for len(c.a.s.open)+len(c.a.s.done) > 0 {
					c.a.s.expect(ok(seqs[k] - 1))
				}
			}
		}},
	{ID: "srq/receive-on-qp", Clause: "man ibv_post_recv", Needs: needSRQ,
		Requirement: "A QP with an SRQ takes no receives of its own.", Run: func(e *Env) {
			_, c := e.withSRQ(8)
			n, err := c.b.qp.PostRecv([]rdma.RecvWR{recv(1)})
			if n != 0 {
				e.failf("no receive taken", "%d", n)
			}
			e.refusedWith("receive on a qp with an srq", err, rdma.ErrInvalid)
			c.works()
		}},
	{ID: "srq/limit-event", Clause: "IBTA 10.2.9.1*; man ibv_modify_srq", Needs: needSRQEvent,
		Requirement: "The armed limit raises one event when fewer receives than the limit are left, and is disarmed " +
			"by it.", Run: func(e *Env) {
			srq, c := e.withSRQ(16)
			srq.postEmpty(10)
			e.must("arm limit 7", srq.srq.Arm(7))
			c.deliver(3)
			e.expectNoEvent(e.B, rdma.EventSRQLimit, 0, "with 7 receives left and limit 7")
			c.deliver(1)
			e.expectEvent(e.B, rdma.EventSRQLimit, 0)
			c.deliver(2)
			e.pause(quietTime)
			e.expectNoEvent(e.B, rdma.EventSRQLimit, 0, "after the limit was disarmed by its event")
			e.must("arm limit 4", srq.srq.Arm(4))
			c.deliver(1)
			e.expectEvent(e.B, rdma.EventSRQLimit, 0)
		}},
	{ID: "srq/arm-below", Clause: "IBTA 10.2.9*", Level: May, Needs: needSRQEvent,
		Requirement: "A limit armed with fewer receives left raises its event at once or at the next receive that is " +
			"taken.", Run: func(e *Env) {
			srq, c := e.withSRQ(16)
			srq.postEmpty(3)
			e.must("arm limit 5", srq.srq.Arm(5))
			if len(events(e.B, 0)) > 0 {
				e.Note("event at once")
				return
			}
			c.deliver(1)
			e.expectEvent(e.B, rdma.EventSRQLimit, 0)
			e.Note("event at the next receive that was taken")
		}},
	{ID: "srq/limit-range", Clause: "man ibv_modify_srq", Needs: needSRQEvent,
		Requirement: "Limit 0 disarms; a limit above the largest queue, or below 0, is refused.", Run: func(e *Env) {
			srq, c := e.withSRQ(16)
			e.refusedWith("limit above MaxSRQWR", srq.srq.Arm(e.Caps.MaxSRQWR+1), rdma.ErrInvalid)
			e.refusedWith("limit -1", srq.srq.Arm(-1), rdma.ErrInvalid)
			srq.postEmpty(8)
			e.must("arm limit 7", srq.srq.Arm(7))
			e.must("disarm", srq.srq.Arm(0))
			c.deliver(4)
			e.pause(quietTime)
			e.expectNoEvent(e.B, rdma.EventSRQLimit, 0, "after limit 0")
		}},
	{ID: "srq/full", Clause: "man ibv_post_srq_recv (ENOMEM)", Needs: needSRQ,
		Requirement: "A full SRQ refuses the next receive and keeps those that it took.", Run: func(e *Env) {
			depth := min(8, e.Caps.MaxSRQWR)
			srq := e.newSRQ(0, depth)
			c := e.connect(connOpts{srq: srq})
			taken := e.fillQueue("srq", depth, func(i int) error {
				_, err := srq.tryPost(recv(i))
				return err
			})
			c.deliver(taken)
			c.works()
		}},
	{ID: "srq/qp-error-keeps", Clause: "IBTA 10.2.9*; man ibv_create_srq", Needs: needSRQ,
		Requirement: "When one of its QPs fails, the receives of an SRQ are not flushed and other QPs go on " +
			"consuming them.", Run: func(e *Env) {
			const n = 8
			srq := e.newSRQ(0, min(16, e.Caps.MaxSRQWR))
			sick, well := e.connect(connOpts{srq: srq}), e.connect(connOpts{srq: srq})
			srq.postEmpty(n)
			e.must("fail", sick.b.qp.Fail())
			sick.b.state(rdma.QPErr)
			sick.b.r.silent("receives of the srq not flushed")
			sick.b.close()
			well.deliver(n)
			well.works()
		}},
	{ID: "srq/last-wqe-event", Clause: "man ibv_get_async_event (LAST_WQE_REACHED)", Needs: needSRQEvent,
		Requirement: "A QP with an SRQ that goes to ERR reports that it takes no more receives.", Run: func(e *Env) {
			srq, c := e.withSRQ(16)
			srq.post(recv(1), recv(2))
			e.must("fail", c.b.qp.Fail())
			e.expectEvent(e.B, rdma.EventLastWQEReached, c.b.num)
		}},
	{ID: "srq/busy", Clause: "man ibv_destroy_srq", Needs: needSRQ,
		Requirement: "An SRQ that a QP uses cannot be destroyed and stays usable.", Run: func(e *Env) {
			srq, c := e.withSRQ(8)
			e.refusedWith("close an srq in use", srq.srq.Close(), rdma.ErrBusy)
			c.works()
			c.b.close()
			e.must("close the unused srq", srq.srq.Close())
		}},
	{ID: "srq/list-partial", Clause: "man ibv_post_srq_recv (bad_recv_wr)", Needs: needSRQ,
		Requirement: "When the second of three receives is refused, the first is taken and the third is not.",
		Run: func(e *Env) {
			srq, c := e.withSRQ(8)
			bad := recv(2)
			bad.NumSGE = rdma.MaxSGE + 1
			n, err := srq.tryPost(recv(1), bad, recv(3))
			if n != 1 || err == nil {
				e.failf("one receive taken and an error for the second", "n=%d, error %v", n, err)
			}
			c.a.do(send(1))
			c.b.r.expect(got(1, 0))
			c.works()
		}},
	{ID: "srq/other-domain", Clause: "IBTA 10.2.3*; man ibv_create_srq", Level: May, Needs: needSRQ,
		Requirement: "A QP and its shared queue are of one protection domain, or receives are held against one of " +
			"the two.", Run: func(e *Env) {
			// A device may refuse the combination, or go by the queue or by the QP, but not by both.
			pd := e.newPD(e.B)
			cq := e.newCQ(e.B, "cq", 8).cq
			srq := e.newSRQ(pd, min(8, e.Caps.MaxSRQWR))
			qp, err := e.B.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4, SRQ: srq.srq})
			if err != nil {
				e.refusedWith("create a qp with an srq of another domain", err, rdma.ErrInvalid)
				e.Note("refused: %v", err)
				return
			}
			e.must("close the qp", qp.Close())
			taken := ""
			for _, of := range []struct {
				pd   rdma.PD
				name string
			}{{pd, "the queue"}, {0, "the QP"}} {
				srq := e.newSRQ(pd, min(8, e.Caps.MaxSRQWR))
				c := e.connect(connOpts{srq: srq})
				src := e.region(c.a, "src", 64, localOnly)
				dst := e.regionOf(e.B, of.pd, "dst of the domain of "+of.name, 64, localOnly)
				src.fill(1)
				dst.freeze()
				srq.post(recv(1, dst.all()))
				c.a.post(send(1, src.all()))
				wc := c.b.r.next("a receive of the srq")
				if wc.Status == rdma.StatusSuccess {
					dst.holds(src.data())
					if taken != "" {
						e.failf("receives of one domain", "of %s, and of %s", taken, of.name)
					}
					taken = of.name
					c.a.s.expect(ok(1))
					continue
				}
				if wc.ID != recvID(1) {
					e.failf(c.b.r.name+": recv#1 ends", "%s", c.b.r.text(&wc))
				}
				e.Note("for the domain of %s: %s", of.name, wc.Status)
				dst.unchanged("by a message for another domain")
				c.a.s.endedBy(outcome{ack: append([]rdma.Status{rdma.StatusRemOpErr}, lateRefusal...),
					local: lateRefusal})
			}
			if taken == "" {
				e.failf("receives of the domain of the queue or of the QP", "of neither")
			}
			e.Note("receives are of the domain of %s", taken)
		}},
}

func (c *conn) deliver(n int) {
	for i := range n {
		c.a.do(send(i))
		if wc := c.b.r.next("a receive of the srq"); wc.Status != rdma.StatusSuccess {
			c.e.failf("delivery through the srq", "%s", c.b.r.text(&wc))
		}
	}
}
