package conform

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cmLifeCases are about listeners, and about how connections end.
var cmLifeCases = []Case{
	{ID: "cm/listen-port-zero", Clause: "man rdma_bind_addr",
		Requirement: "Port 0 picks a free port that the listener tells, another one each time.", Run: func(e *Env) {
			seen := map[string]bool{}
			for range 3 {
				l := e.newListener(4)
				_, port, err := net.SplitHostPort(l.Addr())
				if err != nil || port == "0" || port == "" || seen[l.Addr()] {
					e.failf("a new address with a port", "%q", l.Addr())
				}
				seen[l.Addr()] = true
				e.listener = l // the connection goes to this one
				e.connect(connOpts{}).works()
			}
		}},
	{ID: "cm/listen-in-use", Clause: "man rdma_bind_addr (EADDRINUSE)",
		Requirement: "An address can be listened at once; it is free again when the listener is closed.",
		Run: func(e *Env) {
			l := e.newListener(1)
			addr := l.Addr()
			e.notCreated("second listener at "+addr, rdma.ErrAddrInUse)(e.B.Listen(e.ctx, addr, 1))
			e.must("close listener", l.Close())
			e.must("close listener again", l.Close())
			l, err := e.B.Listen(e.ctx, addr, 1)
			e.must("listen at the freed address", err)
			e.must("close listener", l.Close())
		}},
	{ID: "cm/listener-close", Clause: "man rdma_destroy_id",
		Requirement: "Closing a listener ends an accept that waits, and later ones.", Run: func(e *Env) {
			l := e.newListener(1)
			waiting := e.start("accept", func() error { _, err := l.Accept(e.ctx); return err })
			e.pause(20 * time.Millisecond)
			e.must("close listener", l.Close())
			e.refusedWith("accept while the listener is closed", e.await(waiting), rdma.ErrClosed)
			_, err := l.Accept(e.ctx)
			e.refusedWith("accept on a closed listener", err, rdma.ErrClosed)
		}},
	{ID: "cm/accept-deadline", Clause: "man rdma_get_cm_event",
		Requirement: "An accept without a request ends with its context.", Run: func(e *Env) {
			l := e.listen()
			start := time.Now()
			err := e.beside("accept", func() error { _, err := l.Accept(e.short(quietTime)); return err })
			if !errors.Is(err, context.DeadlineExceeded) {
				e.failf("the error of the context", "%v", err)
			}
			e.within(quietTime+soon, start, fmt.Sprintf("end after %v", quietTime))
			e.connect(connOpts{}).works()
		}},
	{ID: "cm/backlog", Clause: "man rdma_listen (backlog)",
		Requirement: "Requests beyond the backlog are refused or wait: each connect comes to an end, none is lost.",
		Run: func(e *Env) {
			const backlog, n = 2, 8
			l := e.newListener(backlog)
			ctx := e.short(3 * time.Second)
			var calls []*task
			for i := range n {
				x := e.idleEnd(fmt.Sprintf("a%d", i+1))
				calls = append(calls, e.start("connect", func() error {
					_, err := x.qp.Connect(ctx, l.Addr(), e.param())
					return err
				}))
			}
			e.pause(quietTime)
			// Everybody who still waits is served now.
			served := 0
			for {
				req, err := l.Accept(e.short(2 * quietTime))
				if errors.Is(err, context.DeadlineExceeded) {
					break
				}
				e.must("accept", err)
				y := e.newEnd(e.B, fmt.Sprintf("b%d", served+1), connOpts{}, nil, nil, 0, 0)
				if _, err := req.Accept(ctx, y.qp, e.param()); err != nil {
					e.Note("accept: %v", err) // its requester has gone
					continue
				}
				served++
			}
			connected, refused := 0, 0
			for _, t := range calls {
				err := e.await(t)
				if err == nil {
					connected++
					continue
				}
				e.refusedWith("connect beyond the backlog", err, rdma.ErrRejected, rdma.ErrUnreachable,
					context.DeadlineExceeded)
				refused++
			}
			if connected != served || connected < backlog {
				e.failf(fmt.Sprintf("the requests that were accepted are connected, at least %d", backlog),
					"%d accepted, %d connected", served, connected)
			}
			e.Note("%d connected, %d refused", connected, refused)
		}},
	{ID: "cm/abandoned", Clause: "man rdma_get_cm_event",
		Requirement: "A requester that gives up does not disturb the listener.", Run: func(e *Env) {
			c := e.pair(connOpts{})
			l := e.listen()
			if err := e.await(c.connecting(e.short(quietTime))); err == nil {
				e.failf("no connection without an answer", "one")
			}
			c.a.close()
			// The request may still be in the queue: answering it must return, and what it
			// gives must not disturb the next one.
			if req, err := l.Accept(e.short(quietTime)); err == nil {
				_, err = req.Accept(e.short(soon), c.b.qp, e.param())
				e.Note("late accept: %v", err)
			}
			c.b.close()
			e.connect(connOpts{}).works()
		}},
	{ID: "cm/close-while-connecting", Clause: "man rdma_destroy_id, rdma_destroy_qp",
		Requirement: "A QP can be destroyed while its connect waits: both calls return.", Run: func(e *Env) {
			c := e.pair(connOpts{})
			t := c.connecting(e.ctx)
			e.pause(50 * time.Millisecond)
			e.must("close", e.beside("close", c.a.qp.Close))
			start := time.Now()
			if err := e.await(t); err == nil {
				e.failf("an error of a connect whose qp is destroyed", "none")
			}
			e.within(soon, start, "the end of the connect")
		}},
	{ID: "cm/cycles", Clause: "man rdma_connect",
		Requirement: "Connections can be made and ended again and again, and nothing is left behind.",
		Run: func(e *Env) {
			n := e.loops(60, 1000)
			boxA, boxB := e.newCQ(e.A, "cq of a", 64), e.newCQ(e.B, "cq of b", 64)
			cycle := func() {
				c := e.connect(connOpts{boxA: boxA, boxB: boxB})
				c.a.disconnect()
				c.b.waitState(rdma.QPErr)
				c.close()
				boxA.ends, boxB.ends, e.conns, e.tasks = boxA.ends[:0], boxB.ends[:0], e.conns[:0], e.tasks[:0]
			}
			for range 5 {
				cycle() // pools may fill first
			}
			before := openFiles()
			for range n {
				cycle()
			}
			// A provider may close a socket a moment after its QP.
			e.wait(func() string { return fmt.Sprintf("open files back near %d, now %d", before, openFiles()) },
				func() bool { return openFiles() <= before+n/4 })
		}},
	{ID: "cm/parallel", Clause: "man rdma_connect",
		Requirement: "Many connections can be set up at the same time, each with its own parameters.",
		Run: func(e *Env) {
			n := e.loops(16, 200)
			l := e.newListener(n)
			conns := make([]*conn, n)
			for i := range conns {
				conns[i] = e.pair(connOpts{})
				conns[i].b.postRecv(recv(1))
			}
			calls := []*task{e.start("accept all", func() error {
				for range n {
					req, err := l.Accept(e.ctx)
					if err != nil {
						return err
					}
					data := req.Param().PrivateData
					if len(data) < 4 || int(binary.BigEndian.Uint32(data)) >= n {
						return fmt.Errorf("private data %x", data)
					}
					p := e.param()
					p.PrivateData = data[:4]
					if _, err := req.Accept(e.ctx, conns[binary.BigEndian.Uint32(data)].b.qp, p); err != nil {
						return err
					}
				}
				return nil
			})}
			for i, c := range conns {
				p := e.param()
				p.PrivateData = binary.BigEndian.AppendUint32(nil, uint32(i))
				calls = append(calls, e.start("connect", func() (err error) {
					c.pa, err = c.a.qp.Connect(e.ctx, l.Addr(), p)
					return err
				}))
			}
			for _, t := range calls {
				e.must(t.what, e.await(t))
			}
			for i, c := range conns {
				e.padded("own private data back", c.pa.PrivateData, binary.BigEndian.AppendUint32(nil, uint32(i)))
				c.a.do(send(1))
				c.b.r.expect(got(1, 0)) // at the end that answered this request and at no other
			}
		}},
	{ID: "cm/disconnect", Clause: "man rdma_disconnect",
		Requirement: "A disconnect by either side brings both QPs to ERR.", Run: func(e *Env) {
			for i := range 2 {
				c := e.connect(connOpts{})
				[]*end{c.a, c.b}[i].disconnect()
				c.dead()
			}
		}},
	{ID: "cm/disconnect-delivers", Clause: "man rdma_disconnect; RFC 5040 §6.2", Needs: needSend,
		Requirement: "What was posted before a disconnect is delivered when the peer takes it.", Run: func(e *Env) {
			const size = 20000
			n := e.deep(8)
			c, src, dst := e.sending(n * size)
			c.b.recvSlots(n, dst, size)
			for i := range n {
				c.a.post(send(i, src.sge(i*size, size)))
			}
			c.a.disconnect()
			c.a.s.expectOK(0, n)
			c.b.r.expectGot(n, size)
			dst.holds(src.data())
			c.b.waitState(rdma.QPErr)
		}},
	{ID: "cm/disconnect-in-transfer", Clause: "man rdma_disconnect", Needs: needWrite,
		Requirement: "A disconnect by the target of a bulk transfer ends it: the rest is flushed and nothing hangs.",
		Run: func(e *Env) {
			c, src, dst := e.writing(16384)
			var bye *task
			c.untilGone(src, dst, func() {
				bye = e.start("disconnect", func() error { return c.b.qp.Disconnect(e.short(5 * time.Second)) })
			})
			// The peer never stopped sending, so the deadline may pass first.
			if err := e.await(bye); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				e.failf("disconnect returns without an error or with that of its context", "%v", err)
			}
			c.b.waitState(rdma.QPErr)
		}},
	{ID: "cm/simultaneous-disconnect", Clause: "man rdma_disconnect",
		Requirement: "Both sides may disconnect at the same time.", Run: func(e *Env) {
			for range e.loops(10, 200) {
				c := e.connect(connOpts{})
				ta := e.start("disconnect of a", func() error { return c.a.qp.Disconnect(e.ctx) })
				tb := e.start("disconnect of b", func() error { return c.b.qp.Disconnect(e.ctx) })
				e.must(ta.what, e.await(ta))
				e.must(tb.what, e.await(tb))
				c.a.waitState(rdma.QPErr)
				c.b.waitState(rdma.QPErr)
				c.close()
			}
		}},
}

// openFiles counts the file descriptors of the process; 0 where that is unknown.
func openFiles() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

var peerGone = outcome{
	ack: []rdma.Status{rdma.StatusRetryExcErr, rdma.StatusRemAbortErr, rdma.StatusRemOpErr, rdma.StatusWRFlushErr,
		rdma.StatusFatalErr, rdma.StatusGeneralErr},
	local:  append([]rdma.Status{rdma.StatusRetryExcErr}, lateRefusal...),
	silent: true,
}

// untilGone writes until the QP has left RTS, then requires what endedBy does. stop runs once, after a few writes.
func (c *conn) untilGone(src, dst *region, stop func()) {
	e := c.e
	for n := 0; c.a.qp.State() == rdma.QPRTS; n++ {
		if n >= 3*c.a.depth && stop != nil {
			stop()
			stop = nil
		}
		if len(c.a.s.open) < c.a.depth && c.a.qp.State() == rdma.QPRTS {
			c.a.post(write(n, dst.at(0), src.all()))
		}
		e.step()
		if e.ctx.Err() != nil {
			e.failf("the writes end in error after the peer has gone", "%d turns, still in RTS", n)
		}
	}
	if stop != nil {
		e.failf("the writes succeed until the peer leaves", "an error before%s", e.states())
	}
	c.a.s.endedBy(peerGone)
	c.a.r.flushed(true)
	c.a.flushesLater()
}
