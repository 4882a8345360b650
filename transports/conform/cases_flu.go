package conform

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// FLU: flushing.
var fluCases = []Case{
	{ID: "flu/each-once", Clause: "IBTA 10.3.1.7*, 10.8*; man ibv_modify_qp", Needs: needSendWrite,
		Requirement: "All work outstanding when a QP goes to ERR completes with WR_FLUSH_ERR, in order, each request " +
			"once.", Run: func(e *Env) {
			depth := e.deep(16)
			c := e.connect(connOpts{depth: depth, rdepth: depth})
			src, dst := c.writing(100000)
			// Sends that find no receive stay outstanding for certain. Where that would end
			// the connection, long writes are at least likely to be.
			stay := e.Caps.Features.Has(rdma.FeatRNRRetry)
			for i := range depth {
				c.a.postRecv(recv(i))
				if stay {
					c.a.post(send(i, src.sge(0, 64)))
				} else {
					c.a.post(write(i, dst.at(0), src.all()))
				}
			}
			e.must("fail", c.a.qp.Fail())
			c.a.state(rdma.QPErr)
			// In order and once each: file. All of them: flushed waits for the last.
			c.a.r.flushed(true)
			c.a.s.flushed(stay)
			e.pause(quietTime) // a second flush would come now
			if n := len(c.a.s.done) + len(c.a.r.done); n > 0 {
				e.failf("each request flushed once", "%d more completions", n)
			}
		}},
	{ID: "flu/after-error", Clause: "IBTA C10-96, C10-97", Needs: needRead,
		Requirement: "After a remote error too, work posted later is taken and flushed in order: the last one is a " +
			"drain marker.", Run: func(e *Env) {
			c, src, sink := e.reading(64)
			bad := src.at(0)
			bad.key ^= 0x5a5a5a5a
			c.refuses(c.a, accessRefused(0x0100), read(1, bad, sink.all()))
			for i := range 8 {
				c.a.post(send(10 + i))
				c.a.postRecv(recv(10 + i))
			}
			for i := range 8 {
				c.a.s.expect(sendFails(10+i, rdma.StatusWRFlushErr))
				c.a.r.expect(recvFails(10+i, rdma.StatusWRFlushErr))
			}
		}},
	{ID: "flu/error-then-flush", Clause: "IBTA 10.8*; man ibv_poll_cq", Needs: needRead,
		Requirement: "The request that failed completes first with its own status, those behind it flushed.",
		Run: func(e *Env) {
			c, src, sink := e.reading(64)
			var more []rdma.SendWR
			for i := range 6 {
				more = append(more, read(2+i, src.at(0), sink.all()))
			}
			sink.freeze()
			c.refuses(c.a, accessRefused(0x0100), read(1, src.badKey(), sink.all()), more...)
			sink.unchanged("by reads behind a refused one")
		}},
	{ID: "flu/disconnect", Clause: "man rdma_disconnect",
		Requirement: "A disconnect flushes what is outstanding on both sides.", Run: func(e *Env) {
			const n = 8
			c := e.connect(connOpts{})
			for i := range n {
				c.a.postRecv(recv(i))
				c.b.postRecv(recv(i))
			}
			c.a.disconnect()
			for _, x := range []*end{c.a, c.b} {
				x.waitState(rdma.QPErr)
				x.r.flushed(true)
				x.flushesLater()
			}
		}},
	{ID: "flu/closed-qp", Clause: "IBTA 11.2.4.4*; man ibv_destroy_qp",
		Requirement: "The completions of a destroyed QP on a shared CQ come once and leave those of another QP alone.",
		Run: func(e *Env) {
			const n = 8
			gone, stays := e.sharedCQs(128, connOpts{})
			for i := range n {
				gone.a.postRecv(recv(i))
				stays.b.postRecv(recv(i))
			}
			stays.a.post(send(0), send(1))
			gone.a.close()
			stays.a.post(send(2), send(3))
			gone.a.r.flushed(true)
			stays.a.s.expectOK(0, 4)
			stays.b.r.expectGot(4, 0)
			gone.a.r.silent("no more completions of the destroyed qp")
		}},
	{ID: "flu/unsignaled", Clause: "IBTA 10.7.3.1",
		Requirement: "A flush completes unsignalled requests too.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			e.must("fail", c.a.qp.Fail())
			for i := range 4 {
				c.a.post(unsignaled(send(i)))
			}
			for i := range 4 {
				c.a.s.expect(sendFails(i, rdma.StatusWRFlushErr))
			}
		}},
}

// RNR: a message without a receive.
var rnrCases = []Case{
	{ID: "rnr/retry-exhausted", Clause: "IBTA 9.7.5.2.8; man ibv_modify_qp (rnr_retry)", Needs: needRNR,
		Requirement: "A send that finds no receive ends with RNR_RETRY_EXC_ERR when no retry is allowed.",
		Run: func(e *Env) {
			c := e.rnrRetries(0)
			c.a.post(send(1), send(2))
			c.a.s.expect(sendFails(1, rdma.StatusRNRRetryExcErr), sendFails(2, rdma.StatusWRFlushErr))
			c.a.waitState(rdma.QPErr)
			c.a.flushesLater()
		}},
	{ID: "rnr/retries-take-time", Clause: "IBTA 9.7.5.2.8, Table 45; man ibv_modify_qp (min_rnr_timer, rnr_retry)",
		Needs:       needRNR,
		Requirement: "Each try of a send that finds no receive waits for the receiver's timer, of 10 µs to 655.36 ms.",
		Run: func(e *Env) {
			// The device's own timer is unknown, so the limits are the shortest and the longest of
			// the table. A busy machine makes waits longer and never shorter: one short wait fails.
			const tries, timer, longest = 6, 10 * time.Microsecond, 655360 * time.Microsecond
			least := time.Hour
			for range e.loops(8, 50) {
				c := e.rnrRetries(tries)
				start := time.Now()
				c.a.post(send(1))
				c.a.s.expect(sendFails(1, rdma.StatusRNRRetryExcErr))
				least = min(least, time.Since(start))
				if least < tries*timer {
					e.failf(fmt.Sprintf("%d tries take %v and more", tries, tries*timer), "%v", least)
				}
				c.a.waitState(rdma.QPErr)
			}
			if most := tries * longest; least > most+time.Second {
				e.failf(fmt.Sprintf("%d tries take %v at most", tries, most), "%v at least", least)
			}
			e.Note("%d tries took %v at least", tries, least.Round(10*time.Microsecond))
		}},
	{ID: "rnr/late-receive", Clause: "IBTA 9.7.5.2.8; man ibv_modify_qp (rnr_retry)", Needs: needRNR,
		Requirement: "With retries without end, a send waits for a receive that is posted later, and is delivered " +
			"once.", Run: func(e *Env) {
			c, src, dst := e.sending(200)
			c.a.post(send(1, src.sge(0, 100)), send(2, src.sge(100, 100)))
			c.a.s.silent("the send waits")
			c.b.postRecv(recv(1, dst.sge(0, 100)), recv(2, dst.sge(100, 100)), recv(3, dst.all()))
			c.a.s.expect(ok(1), ok(2))
			c.b.r.expect(got(1, 100), got(2, 100))
			c.a.do(send(3))
			c.b.r.expect(got(3, 0)) // a second delivery of a retried send would have taken this one
			dst.holds(src.data())
		}},
	{ID: "rnr/write-is-free", Clause: "IBTA 9.4.3*",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), Features: rdma.FeatRNRRetry},
		Requirement: "Writes and reads need no receive.", Run: func(e *Env) {
			c := e.rnrRetries(0)
			src, dst := c.writing(100)
			sink := e.region(c.a, "sink", 100, e.sinkAccess())
			c.a.do(write(1, dst.at(0), src.all()), read(2, dst.at(0), sink.all()))
			sink.holds(src.data())
		}},
	{ID: "rnr/ends-connection", Clause: "RFC 5041 §7.1 (MSN: no buffer available)", Needs: needSend,
		Without:     rdma.FeatRNRRetry,
		Requirement: "Without retries, a send that finds no receive ends the connection at both ends.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, localOnly)
			c.refuses(c.a, noReceive, send(1, src.all()))
		}},
}

var noReceive = outcome{ack: []rdma.Status{rdma.StatusRNRRetryExcErr, rdma.StatusRemOpErr, rdma.StatusRetryExcErr},
	local: lateRefusal, codes: []uint32{0x1202}}

func (c *conn) noReceive(wr rdma.SendWR) {
	c.a.post(wr)
	c.a.s.expect(want{id: wr.ID, status: []rdma.Status{rdma.StatusRNRRetryExcErr}})
	c.a.waitState(rdma.QPErr)
}

func (e *Env) rnrRetries(n int) *conn {
	p := e.param()
	p.RNRRetry = n
	return e.connectWith(p, connOpts{})
}
