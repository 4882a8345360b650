package conform

import (
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// RAW: queue pairs that are led through their states by hand. They are listed with QPS.
var rawCases = raw([]Case{
	{ID: "qps/edges-by-hand", Clause: "IBTA 11.2.4.2 Table 91; man ibv_modify_qp",
		Requirement: "With the attributes that each edge needs, a QP goes from RESET over INIT and RTR to RTS, and " +
			"works.", Run: func(e *Env) {
			x := e.rawEnd("raw")
			x.move(rdma.QPRTS)
			for i := range 3 {
				x.talks(i)
			}
		}},
	{ID: "qps/attribute-missing", Clause: "IBTA 11.2.4.2 Table 91; man ibv_modify_qp (NOTES)",
		Requirement: "An edge is refused when any one of the attributes that it needs is missing, and the QP is as " +
			"it was.", Run: func(e *Env) {
			x := e.rawEnd("raw")
			for i := 1; i < len(rawPath); i++ {
				needs, _ := rdma.AttrsOf(rawPath[i-1], rawPath[i])
				for _, one := range needs.Each() {
					x.stays(rawPath[i], needs&^one)
				}
				x.move(rawPath[i])
			}
			x.talks(1)
		}},
	{ID: "qps/attribute-unwanted", Clause: "IBTA 11.2.4.2 Table 91; man ibv_modify_qp (NOTES)",
		Requirement: "An edge is refused with an attribute that it does not take, and the QP is as it was.",
		Run: func(e *Env) {
			x := e.rawEnd("raw")
			for i, wrong := range []rdma.QPAttrs{rdma.AttrSQPSN, rdma.AttrSQPSN, rdma.AttrPort} {
				needs, _ := rdma.AttrsOf(rawPath[i], rawPath[i+1])
				x.stays(rawPath[i+1], needs|wrong)
				x.move(rawPath[i+1])
			}
			x.talks(1)
		}},
	{ID: "qps/no-shortcuts", Clause: "IBTA 10.3.1*; man ibv_modify_qp",
		Requirement: "No state is left out or gone back to but by RESET, and the QP is as it was.", Run: func(e *Env) {
			x := e.rawEnd("raw")
			all := func(to rdma.QPState) (needs rdma.QPAttrs) { // what leads there from where it may be led from
				for i := 1; i < len(rawPath); i++ {
					if rawPath[i] == to {
						needs, _ = rdma.AttrsOf(rawPath[i-1], to)
					}
				}
				return needs
			}
			for _, at := range rawPath {
				x.move(at)
				for _, to := range rawPath[1:] {
					if !rdma.CanTransition(at, to) {
						x.stays(to, all(to))
					}
				}
			}
			x.talks(1)
			x.goes(rdma.QPErr)
			for _, to := range rawPath[1:] {
				x.stays(to, all(to))
			}
		}},
	{ID: "qps/reset-discards", Clause: "IBTA 10.3.1*, C10-97.2.1; man ibv_modify_qp",
		Requirement: "From every state a QP goes to RESET, where what was posted is gone without a completion and " +
			"nothing can be posted.", Run: func(e *Env) {
			for _, at := range append(append([]rdma.QPState{}, rawPath[1:]...), rdma.QPErr) {
				x := e.rawEnd("raw in " + at.String())
				if at == rdma.QPErr {
					x.move(rdma.QPRTS)
					x.goes(rdma.QPErr)
				} else {
					x.move(at)
					for i := range 4 {
						x.postRecv(recv(i))
					}
					// Nobody will ever see them: they are not outstanding any more.
					x.r.open = nil
				}
				x.goes(rdma.QPReset)
				x.refusesWork()
				e.pause(quietTime / 4) // a completion of a discarded request would be filed as unknown
			}
		}},
	{ID: "qps/use-after-reset", Clause: "IBTA 10.3.1*; man ibv_modify_qp",
		Requirement: "A QP that was reset goes through its states again and works, with nothing left of its life " +
			"before.", Run: func(e *Env) {
			x := e.rawEnd("raw")
			depth := e.deep(8)
			for round := range 3 {
				x.move(rdma.QPRTS)
				x.talks(10 * round)
				if round == 2 { // from ERR, with what was flushed there
					x.postRecv(recv(70))
					x.goes(rdma.QPErr)
					x.r.expect(recvFails(70, rdma.StatusWRFlushErr))
				} else {
					for i := range depth {
						x.postRecv(recv(80 + i)) // a whole queue of them
					}
					x.r.open = nil
				}
				x.goes(rdma.QPReset)
			}
			x.move(rdma.QPRTS)
			for i := range depth {
				x.postRecv(recv(i)) // the queue has all its places
			}
			if _, err := x.tryRecv(recv(depth)); err == nil || errors.Is(err, rdma.ErrState) {
				e.Note("a queue of %d takes %d: %v", depth, depth+1, err)
				if err == nil {
					depth++
				}
			}
			for i := range depth {
				x.do(send(i))
				x.r.expect(got(i, 0))
			}
		}},
})

func raw(cases []Case) []Case {
	for i := range cases {
		cases[i].Raw = true
		cases[i].Needs.Ops |= rdma.Ops(rdma.OpSend)
	}
	return cases
}

type rawEnd struct {
	*end
	raw rdma.RawQP
}

func (e *Env) rawEnd(name string) *rawEnd {
	box := e.newCQ(e.A, "cq of "+name, 64)
	qp, err := e.A.(rdma.RawQPs).NewRawQP(rdma.QPConfig{SendCQ: box.cq, RecvCQ: box.cq, SendDepth: e.deep(8),
		RecvDepth: e.deep(8)})
	e.must("create raw qp "+name, err)
	x := e.endOf(e.A, name, qp, box, e.deep(8))
	x.state(rdma.QPReset)
	return &rawEnd{x, qp}
}

var rawPath = []rdma.QPState{rdma.QPReset, rdma.QPInit, rdma.QPRTR, rdma.QPRTS}

func (x *rawEnd) move(to rdma.QPState) {
	for i := 1; i < len(rawPath); i++ {
		from, next := rawPath[i-1], rawPath[i]
		if x.qp.State() != from || from == to {
			continue
		}
		needs, _ := rdma.AttrsOf(from, next)
		x.e.must(fmt.Sprintf("%s: %s to %s with %s", x.name, from, next, needs), x.raw.Modify(next, needs))
		x.state(next)
	}
	x.state(to)
}

func (x *rawEnd) goes(to rdma.QPState) {
	from := x.qp.State()
	x.e.must(fmt.Sprintf("%s: %s to %s", x.name, from, to), x.raw.Modify(to, 0))
	x.state(to)
}

func (x *rawEnd) stays(to rdma.QPState, given rdma.QPAttrs) {
	from := x.qp.State()
	err := x.raw.Modify(to, given)
	x.e.refusedWith(fmt.Sprintf("%s: %s to %s with (%s)", x.name, from, to, given), err, rdma.ErrInvalid)
	x.state(from)
}

func (x *rawEnd) talks(n int) {
	x.postRecv(recv(n))
	x.post(send(n))
	x.s.expect(ok(n))
	x.r.expect(got(n, 0))
}

func (x *rawEnd) refusesWork() {
	_, err := x.tryRecv(recv(90))
	x.e.refusedWith("receive in RESET", err, rdma.ErrState, rdma.ErrInvalid)
	_, err = x.tryPost(send(90))
	x.e.refusedWith("send in RESET", err, rdma.ErrState, rdma.ErrInvalid)
}
