package conform

import (
	"context"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// The volley: a promise of this project's waist that no specification makes.
var vlyCases = []Case{
	{ID: "qps/volley", Clause: "rdma.QP.Volley; IBTA 10.3.1? for what it posts",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatVolley},
		Requirement: "A volley posts what it asks, sees a completion, an arrival or a byte, answers what was expected and nothing else, and hands over every completion it polled.",
		Run:         qpsVolley},
}

// volley takes a step at x, whose CQ nobody else polls, until it is met.
func (x *end) volley(v *rdma.Volley) {
	x.sleep()
	defer x.wake()
	x.e.wait(func() string { return "a volley at " + x.name + " to be met" }, func() bool {
		x.step(v)
		return v.Met
	})
}

// step is one call: what it posted goes on record, and what it polled is filed.
func (x *end) step(v *rdma.Volley) {
	e, what, answer := x.e, "volley at "+x.name, v.HasAnswer
	for _, wr := range []struct {
		there bool
		*rdma.SendWR
	}{{v.HasAsk, &v.Ask}, {v.HasAnswer, &v.Answer}} {
		if wr.there {
			x.s.open = append(x.s.open, pending{id: wr.ID, op: wr.Op.Completes()})
		}
	}
	n, err := x.qp.Volley(v, e.scratch[:])
	e.must(what, err)
	if v.HasAsk {
		e.failf(what+" posts what it asks", "it did not")
	}
	if answer && v.HasAnswer {
		x.s.open = x.s.open[:len(x.s.open)-1]
	}
	if answer && !v.HasAnswer && !v.Met {
		e.failf(what+" answers nothing before the wait ends", "it did")
	}
	for _, wc := range e.scratch[:n] {
		x.box.file(wc)
	}
}

func qpsVolley(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src, dst := e.region(c.a, "src", 64, remoteAll), e.region(c.b, "dst", 64, remoteAll)
	src.fill(1)

	// A message and its echo.
	c.a.postRecv(recv(1, src.sge(32, 8)))
	c.b.postRecv(recv(1, dst.sge(0, 8)))
	c.a.post(send(1, src.sge(0, 8)))
	echo := rdma.Volley{Answer: send(2, dst.sge(0, 8)), HasAnswer: true, Until: rdma.UntilRecv, Expect: recvID(1), Looks: 100}
	c.b.volley(&echo)
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
		other := rdma.Volley{Answer: send(20, dst.sge(0, 8)), HasAnswer: true, Until: rdma.UntilRecv, Expect: expect, Looks: 100}
		c.b.volley(&other)
		if !other.HasAnswer {
			e.failf("a message that is not the expected one is not answered", "it is")
		}
		c.b.r.expect(got(3+i, 7+i))
		c.a.s.expect(ok(3 + i))
	}

	// A write, its completion, and the byte that it changes.
	before := dst.data()[63]
	src.data()[40] = before + 1
	ask := rdma.Volley{Ask: write(5, dst.at(63), src.sge(40, 1)), HasAsk: true, Until: rdma.UntilSend, Looks: 100}
	c.a.volley(&ask)
	if ask.Took <= 0 {
		e.failf("the step took time", "%d ns", ask.Took)
	}
	c.a.s.expect(ok(5))
	watch := rdma.Volley{Answer: write(6, src.at(48), dst.sge(63, 1)), HasAnswer: true, Until: rdma.UntilByte, Watch: dst.at(63).addr, Was: before, Looks: 100}
	c.b.volley(&watch)
	c.b.s.expect(ok(6))
	c.barrierFrom(c.b, c.a)
	e.equal(src.name, src.data()[48:49], src.data()[40:41])
	c.works()
	return nil
}
