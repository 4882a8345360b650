package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// rawEnd is a raw QP of device a, in RESET.
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

// rawPath are the states from RESET to RTS.
var rawPath = []rdma.QPState{rdma.QPReset, rdma.QPInit, rdma.QPRTR, rdma.QPRTS}

// move leads the QP from its state along rawPath to another, with what each edge needs.
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

// goes moves the QP to RESET or ERR, which needs nothing.
func (x *rawEnd) goes(to rdma.QPState) {
	from := x.qp.State()
	x.e.must(fmt.Sprintf("%s: %s to %s", x.name, from, to), x.raw.Modify(to, 0))
	x.state(to)
}

// stays requires a move to be refused, and the state to be as it was.
func (x *rawEnd) stays(to rdma.QPState, given rdma.QPAttrs) {
	from := x.qp.State()
	err := x.raw.Modify(to, given)
	x.e.refusedWith(fmt.Sprintf("%s: %s to %s with (%s)", x.name, from, to, given), err, rdma.ErrInvalid)
	x.state(from)
}

// talks has the QP send itself a message.
func (x *rawEnd) talks(n int) {
	x.postRecv(recv(n))
	x.post(send(n))
	x.s.expect(ok(n))
	x.r.expect(got(n, 0))
}

// refusesWork requires a QP in RESET to take nothing.
func (x *rawEnd) refusesWork() {
	_, err := x.tryRecv(recv(90))
	x.e.refusedWith("receive in RESET", err, rdma.ErrState, rdma.ErrInvalid)
	_, err = x.tryPost(send(90))
	x.e.refusedWith("send in RESET", err, rdma.ErrState, rdma.ErrInvalid)
}
