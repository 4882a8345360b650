package conform

import (
	"io"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Requests and calls that have to fail, and what must not happen.

func (c *conn) noEffect(o outcome, wr rdma.SendWR, kept ...*region) {
	for _, r := range kept {
		r.freeze()
	}
	c.refuses(c.a, o, wr)
	for _, r := range kept {
		r.unchanged("by a refused " + wr.Op.String())
	}
}

// localFault requires what [end.localFault] does, and the region to stay as it is.
func (c *conn) localFault(wr rdma.SendWR, kept *region, also ...rdma.Status) {
	kept.freeze()
	if c.a.localFault(wr, also...) {
		c.works()
	}
	kept.unchanged("by a request that is wrong at its source")
}

func (e *Env) notCreated(what string, want ...error) func(io.Closer, error) {
	return func(o io.Closer, err error) {
		if err == nil {
			e.must("close what was created", o.Close())
		}
		e.refusedWith(what, err, want...)
	}
}

func (r *region) badKey() target {
	t := r.at(0)
	t.key ^= 0x5a5a5a5a
	return t
}

// oneSided is a write and a read, and the Terminate codes of their refusal.
func oneSided(writeCode, readCode uint32) []oneSidedOp {
	return []oneSidedOp{{write, accessRefused(writeCode)}, {read, accessRefused(readCode)}}
}

type oneSidedOp struct {
	build   func(n int, t target, g ...rdma.SGE) rdma.SendWR
	refused outcome
}

func (c *conn) receiveFails(src, dst *region) {
	dst.freeze()
	c.refusal(c.a, workRefused(), send(1, src.all()))
	c.b.r.expect(recvFails(1, c.either(rdma.StatusLocProtErr, rdma.StatusLocAccessErr)...))
	c.dead()
	dst.unchanged("by a receive at fault")
}

func (e *Env) within(limit time.Duration, start time.Time, what string) {
	if d := time.Since(start); d > limit {
		e.failf(what, "after %v", d.Round(time.Millisecond))
	}
}

func (q *workQueue) silent(what string) {
	q.e.pause(quietTime)
	if len(q.done) > 0 {
		q.e.failf(what, "%s", q.text(&q.done[0]))
	}
}
