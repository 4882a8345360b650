package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// The ping-pong call: a promise of this project's waist that no specification makes.
var vlyCases = []Case{
	{ID: "qps/volley", Clause: "rdma.QP.PingPong; IBTA 10.3.1* for what it posts",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatPingPong},
		Requirement: "A step of a ping-pong posts what it asks, sees a completion, an arrival or a byte, answers " +
			"what was expected and nothing else, and hands over every completion it polled.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src, dst := e.region(c.a, "src", 64, remoteAll), e.region(c.b, "dst", 64, remoteAll)
			src.fill(1)

			// A message and its echo.
			c.a.postRecv(recv(1, src.sge(32, 8)))
			c.b.postRecv(recv(1, dst.sge(0, 8)))
			c.a.post(send(1, src.sge(0, 8)))
			echo := rdma.PingPongStep{Answer: send(2, dst.sge(0, 8)), HasAnswer: true, Until: rdma.UntilRecv,
				Expect: recvID(1), Looks: 100}
			c.b.stepMet(&echo)
			if echo.HasAnswer {
				e.failf("the expected message is answered", "it is not")
			}
			c.b.r.expect(got(1, 8))
			c.b.s.expect(ok(2))
			c.a.s.expect(ok(1))
			c.a.r.expect(got(1, 8))
			e.equal(src.name, src.data()[32:40], src.data()[:8])

			// Another length, and another receive, than the answer was prepared for.
			for i, expect := range []uint64{recvID(3), recvID(9)} {
				c.b.postRecv(recv(3+i, dst.sge(0, 8)))
				c.a.post(send(3+i, src.sge(0, 7+i)))
				other := rdma.PingPongStep{Answer: send(20, dst.sge(0, 8)), HasAnswer: true, Until: rdma.UntilRecv,
					Expect: expect, Looks: 100}
				c.b.stepMet(&other)
				if !other.HasAnswer {
					e.failf("a message that is not the expected one is not answered", "it is")
				}
				c.b.r.expect(got(3+i, 7+i))
				c.a.s.expect(ok(3 + i))
			}

			// A send where the answer is a write with immediate: its immediate was lost.
			if e.Caps.Ops.Has(rdma.OpWriteImm) {
				c.b.postRecv(recv(5, dst.sge(0, 8)))
				c.a.post(send(5, src.sge(0, 8)))
				lost := rdma.PingPongStep{Answer: writeImm(20, 0, src.at(0), dst.sge(0, 8)), HasAnswer: true,
					Until: rdma.UntilRecv, Expect: recvID(5), Looks: 100}
				c.b.stepMet(&lost)
				if !lost.HasAnswer {
					e.failf("a send is not answered with a write with immediate", "it is")
				}
				c.b.r.expect(got(5, 8))
				c.a.s.expect(ok(5))
			}

			// A write, its completion, and the byte that it changes.
			before := dst.data()[63]
			src.data()[40] = before + 1
			ask := rdma.PingPongStep{Ask: write(7, dst.at(63), src.sge(40, 1)), HasAsk: true, Until: rdma.UntilSend,
				Looks: 100}
			c.a.stepMet(&ask)
			if ask.Took <= 0 {
				e.failf("the step took time", "%d ns", ask.Took)
			}
			c.a.s.expect(ok(7))
			watch := rdma.PingPongStep{Answer: write(6, src.at(48), dst.sge(63, 1)), HasAnswer: true,
				Until: rdma.UntilByte, Watch: dst.at(63).addr, Was: before, Looks: 100}
			c.b.stepMet(&watch)
			c.b.s.expect(ok(6))
			c.barrierFrom(c.b, c.a)
			e.equal(src.name, src.data()[48:49], src.data()[40:41])

			// Steps in one call, in order: three writes, each behind the completion of the one
			// before; and answers that wait for one message after the other.
			var asks [3]rdma.PingPongStep
			for i := range asks {
				asks[i] = rdma.PingPongStep{Ask: write(30+i, dst.at(56), src.sge(16+i, 1)), HasAsk: true,
					Until: rdma.UntilSend, Looks: 100}
			}
			c.a.stepsMet(asks[:])
			for i := range asks {
				if asks[i].Took <= 0 || i > 0 && asks[i].Start < asks[i-1].Start+asks[i-1].Took {
					e.failf("a step begins behind the one before", "step %d at %d ns for %d ns", i, asks[i].Start,
						asks[i].Took)
				}
				c.a.s.expect(ok(30 + i))
			}
			c.barrierFrom(c.a, c.b)
			e.equal(dst.name, dst.data()[56:57], src.data()[18:19])
			var answers [3]rdma.PingPongStep
			for i := range answers {
				id := 40 + i
				answers[i] = rdma.PingPongStep{Answer: send(id, dst.sge(8*i, 8)), HasAnswer: true,
					Until: rdma.UntilRecv, Expect: recvID(id), Looks: 100}
				c.b.postRecv(recv(id, dst.sge(8*i, 8)))
				c.a.postRecv(recv(id, src.sge(32, 8)))
			}
			for i := range answers {
				if k, _ := c.b.steps(answers[i:]); k != 0 {
					e.failf("what nothing came for is not met", "it is")
				}
				c.a.post(send(40+i, src.sge(0, 8)))
				c.b.stepsMet(answers[i : i+1])
				c.b.r.expect(got(40+i, 8))
				c.b.s.expect(ok(40 + i))
				c.a.s.expect(ok(40 + i))
				c.a.r.expect(got(40+i, 8))
			}
			c.works()
		}},
}

// stepMet takes one step at x, whose CQ nobody else polls, until it is met.
func (x *end) stepMet(v *rdma.PingPongStep) {
	vs := []rdma.PingPongStep{*v}
	x.stepsMet(vs)
	*v = vs[0]
}

// stepsMet takes steps at x until all are met, or one has not answered.
func (x *end) stepsMet(vs []rdma.PingPongStep) {
	x.sleep()
	defer x.wake()
	x.e.wait(func() string { return "ping-pong steps at " + x.name + " to be met" }, func() bool {
		for len(vs) > 0 {
			k, unanswered := x.steps(vs)
			if vs = vs[k:]; k == 0 || unanswered {
				return unanswered
			}
		}
		return true
	})
}

// steps is one call; it returns how many steps were met, and whether the last of them did not answer.
func (x *end) steps(vs []rdma.PingPongStep) (met int, unanswered bool) {
	e, what := x.e, "ping-pong step at "+x.name
	before := append([]rdma.PingPongStep(nil), vs...)
	for i := range vs {
		vs[i].Met = true // must be the provider's word
	}
	n, err := x.qp.PingPong(vs, e.scratch[:])
	e.must(what, err)
	for i := range vs {
		v, over := &vs[i], i > met || unanswered
		for _, wr := range []struct {
			was, is bool
			*rdma.SendWR
		}{{before[i].HasAsk, v.HasAsk, &v.Ask}, {before[i].HasAnswer, v.HasAnswer, &v.Answer}} {
			if wr.was && !wr.is {
				x.s.open = append(x.s.open, pending{id: wr.ID, op: wr.Op.Completes()})
			}
		}
		switch {
		case over && (v.Met || v.HasAsk != before[i].HasAsk || v.HasAnswer != before[i].HasAnswer):
			e.failf(what+" does nothing behind a step that is not met or not answered", "it did")
		case over:
		case v.HasAsk:
			e.failf(what+" posts what it asks", "it did not")
		case before[i].HasAnswer && !v.HasAnswer && !v.Met:
			e.failf(what+" answers nothing before the wait ends", "it did")
		case v.Met:
			met++
			unanswered = v.HasAnswer
		}
	}
	for _, wc := range e.scratch[:n] {
		x.box.file(wc)
	}
	return met, unanswered
}
