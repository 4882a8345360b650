package rpc

import (
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/transports"
)

// echo is the server of the workload rpc.
type echo struct {
	sh   *engine.Shape
	fail func(error)
	now  atomic.Pointer[echoPhase]
}

// echoPhase is what a phase has of its own.
type echoPhase struct {
	in, out *payload.Sequence
	ops     atomic.Int64
}

// NewService answers the calls of a point; fail ends it.
func NewService(sh *engine.Shape, fail func(error)) engine.CallService {
	e := &echo{sh: sh, fail: fail}
	e.begin(engine.GenWarmup)
	return e
}

func (e *echo) Begin(gen int) error {
	e.begin(gen)
	return nil
}

func (e *echo) begin(gen int) {
	e.now.Store(&echoPhase{in: payload.NewSequence(e.sh.Seed, gen, payload.ToServer, e.sh.Size),
		out: payload.NewSequence(e.sh.Seed, gen, payload.ToClient, e.sh.Response)})
}

func (e *echo) End() (int64, error) { return e.now.Load().ops.Load(), nil }
func (e *echo) Close() error        { return nil }

// ServeCall checks a request and answers it.
func (e *echo) ServeCall(s *transports.Served) error {
	p := e.now.Load()
	n := p.in.Number(s.Request)
	if e.sh.Verify {
		if err := payload.Differs(e.sh, engine.SideServer, "request", 0, s.Request, p.in.Cut(n)); err != nil {
			e.fail(err)
			return payload.Lost(err)
		}
	}
	p.ops.Add(1)
	s.Response = p.out.Cut(n)
	return nil
}
