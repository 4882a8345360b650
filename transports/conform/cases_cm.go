package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// CM: connection set-up and its parameters.
var cmCases = []Case{
	{ID: "cm/private-data", Clause: "man rdma_connect, rdma_accept; RFC 5044 §7.1",
		Requirement: "Private data of every length up to the limit reaches the other side, in both directions; zero " +
			"padding may follow.", Run: func(e *Env) {
			limit := e.Caps.MaxPrivate
			for i, n := range []int{0, 1, 4, 5, 56, 57, 195, 196, 197, 251, 252, 253, 254, 255, 256, 257, limit - 1,
				limit} {
				if n < 0 || n > limit {
					continue
				}
				pa, pb := e.param(), e.param()
				pa.PrivateData = patternOf(n, e.salt+uint64(2*i))
				pb.PrivateData = patternOf(n, e.salt+uint64(2*i+1))
				c := e.connect(connOpts{param: &pa, accept: &pb})
				e.padded("private data of the request", c.asked.PrivateData, pa.PrivateData)
				e.padded("private data of the answer", c.pa.PrivateData, pb.PrivateData)
				if c.fromAddr == "" {
					e.failf("the address of the requester", "none")
				}
				c.close()
			}
		}},
	{ID: "cm/private-data-too-long", Clause: "man rdma_connect, rdma_accept",
		Requirement: "Private data above the limit is refused, and the QP can still be connected.", Run: func(e *Env) {
			long := make([]byte, e.Caps.MaxPrivate+1)
			c := e.pair(connOpts{})
			p := e.param()
			p.PrivateData = long
			_, err := c.a.qp.Connect(e.short(soon), e.listen().Addr(), p)
			e.refusedWith("connect with private data above the limit", err, rdma.ErrInvalid)
			c.a.state(rdma.QPInit)
			c.join(connOpts{})
			c.works()

			// The answering side: the refused call is not the answer.
			c2 := e.pair(connOpts{})
			c2.b.postRecv(recv(1))
			t := c2.connecting(e.ctx)
			req := e.request()
			e.refusedWith("reject with private data above the limit", req.Reject(e.ctx, long), rdma.ErrInvalid)
			_, err = req.Accept(e.ctx, c2.b.qp, p)
			e.refusedWith("accept with private data above the limit", err, rdma.ErrInvalid)
			c2.accepts(req)
			e.must("connect", e.await(t))
			c2.a.do(send(1))
			c2.b.r.expect(got(1, 0))
		}},
	{ID: "cm/reject", Clause: "man rdma_reject; RFC 5044 §7.1 (R bit)",
		Requirement: "A refused connect ends as rejected, with the private data of the refusal.", Run: func(e *Env) {
			for _, n := range []int{0, 1, min(100, e.Caps.MaxPrivate), e.Caps.MaxPrivate} {
				c := e.pair(connOpts{})
				why := patternOf(n, uint64(n))
				t := c.connecting(e.ctx)
				req := e.request()
				e.must("reject", e.beside("reject", func() error { return req.Reject(e.ctx, why) }))
				err := e.await(t)
				e.refusedWith("rejected connect", err, rdma.ErrRejected)
				var rej *rdma.RejectError
				if n > 0 && !errors.As(err, &rej) {
					e.failf("an error with private data", "%v", err)
				}
				if rej != nil {
					e.padded("private data of the refusal", rej.PrivateData, why)
				}
				if s := c.a.qp.State(); s == rdma.QPRTS || s == rdma.QPRTR {
					e.failf("the qp of a rejected connect not connected", "%s", s)
				}
				c.close()
			}
			e.connect(connOpts{}).works()
		}},
	{ID: "cm/answer-once", Clause: "man rdma_accept, rdma_reject",
		Requirement: "A request is answered once: a second answer is an error and does no harm.", Run: func(e *Env) {
			c, spare := e.pair(connOpts{}), e.pair(connOpts{})
			c.b.postRecv(recv(1))
			t := c.connecting(e.ctx)
			req := e.request()
			c.accepts(req)
			e.must("connect", e.await(t))
			if err := req.Reject(e.ctx, nil); err == nil {
				e.failf("reject after accept refused", "no error")
			}
			if _, err := req.Accept(e.ctx, spare.b.qp, e.param()); err == nil {
				e.failf("second accept refused", "no error")
			}
			spare.b.state(rdma.QPInit)
			c.a.do(send(1))
			c.b.r.expect(got(1, 0))
		}},
	{ID: "cm/no-listener", Clause: "man rdma_get_cm_event (REJECTED, UNREACHABLE)",
		Requirement: "A connect to an address where nobody listens fails as rejected or unreachable, at once.",
		Run: func(e *Env) {
			l := e.newListener(1)
			addr := l.Addr()
			e.must("close listener", l.Close())
			x := e.idleEnd("a")
			start := time.Now()
			err := e.beside("connect", func() error { _, err := x.qp.Connect(e.ctx, addr, e.param()); return err })
			e.refusedWith("connect without a listener", err, rdma.ErrUnreachable, rdma.ErrRejected)
			e.within(soon, start, "an answer at once")
			e.Note("%v", err)
		}},
	{ID: "cm/never-accepted", Clause: "man rdma_get_cm_event (UNREACHABLE)",
		Requirement: "A connect that is never answered ends at its deadline.", Run: func(e *Env) {
			const limit = 400 * time.Millisecond
			c := e.pair(connOpts{})
			start := time.Now()
			err := e.await(c.connecting(e.short(limit)))
			e.refusedWith("connect that is never answered", err, rdma.ErrUnreachable, context.DeadlineExceeded)
			e.within(limit+soon, start, fmt.Sprintf("end at the deadline of %v", limit))
			if s := c.a.qp.State(); s == rdma.QPRTS {
				e.failf("no connection", "%s", s)
			}
		}},
	{ID: "cm/ird-ord", Clause: "man rdma_connect (responder_resources, initiator_depth); RFC 6581 §9",
		Requirement: "The negotiated ORD of each side is at most what it asked for and at most the IRD of the other.",
		Run: func(e *Env) {
			most := e.Caps.MaxRDAtom
			values := []int{0, 1, min(2, most), most}
			for _, ard := range values {
				for _, brd := range values {
					pa := rdma.ConnParam{IRD: ard, ORD: brd, RNRRetry: 7}
					pb := rdma.ConnParam{IRD: brd, ORD: min(ard+1, most), RNRRetry: 7}
					c := e.connect(connOpts{param: &pa, accept: &pb})
					e.kept(fmt.Sprintf("a asked %d/%d and has %d/%d, b asked %d/%d and has %d/%d (IRD/ORD); b saw %d/%d",
						pa.IRD, pa.ORD, c.pa.IRD, c.pa.ORD, pb.IRD, pb.ORD, c.pb.IRD, c.pb.ORD, c.asked.IRD, c.asked.ORD),
						rule{"the request as the peer sees it: its IRD is our ORD", c.asked.IRD == pa.ORD},
						rule{"the request as the peer sees it: its ORD is our IRD", c.asked.ORD == pa.IRD},
						rule{"ORD of a at most what a asked", c.pa.ORD <= pa.ORD},
						rule{"ORD of a at most IRD of b", c.pa.ORD <= c.pb.IRD},
						rule{"ORD of b at most what b asked", c.pb.ORD <= pb.ORD},
						rule{"ORD of b at most IRD of a", c.pb.ORD <= c.pa.IRD},
						rule{"reads of a possible when both sides asked for some", c.pa.ORD >= 1 || pa.ORD == 0 ||
							pb.IRD == 0},
						rule{"reads of b possible when both sides asked for some", c.pb.ORD >= 1 || pb.ORD == 0 ||
							pa.IRD == 0})
					if e.Caps.Ops.Has(rdma.OpRead) && c.pa.ORD > 0 {
						src := e.region(c.b, "src", 8, remoteAll)
						sink := e.region(c.a, "sink", 8*16, e.sinkAccess())
						c.a.doEach(c.a.depth, func(i int) rdma.SendWR {
							return read(i, src.at(0), sink.sge(8*(i%16), 8))
						})
					}
					c.close()
				}
			}
		}},
	{ID: "cm/ird-ord-range", Clause: "man rdma_connect",
		Requirement: "IRD and ORD above the device's limit, or below 0, are refused.", Run: func(e *Env) {
			c := e.pair(connOpts{})
			for _, p := range []rdma.ConnParam{{IRD: e.Caps.MaxRDAtom + 1}, {ORD: e.Caps.MaxRDAtom + 1}, {IRD: -1},
				{ORD: -1}} {
				_, err := c.a.qp.Connect(e.short(soon), e.listen().Addr(), p)
				e.refusedWith(fmt.Sprintf("connect with IRD %d, ORD %d", p.IRD, p.ORD), err, rdma.ErrInvalid)
				c.a.state(rdma.QPInit)
			}
			c.join(connOpts{})
			c.works()
		}},
	{ID: "cm/receives-before-accept", Clause: "man rdma_connect, IWARP SPECIFIC", Needs: needSend,
		Requirement: "Receives posted before accept are there for a peer that sends at once.", Run: func(e *Env) {
			n := e.deep(8)
			o := connOpts{noHello: true}
			var dst *region
			o.ready = func(c *conn) {
				dst = e.region(c.b, "receives", n*64, localOnly)
				c.b.recvSlots(n, dst, 64)
			}
			c := e.pair(o)
			src := e.region(c.a, "src", n*64, localOnly)
			src.fill(1)
			c.join(o)
			var list []rdma.SendWR
			for i := range n {
				list = append(list, send(i, src.sge(i*64, 64)))
			}
			c.a.post(list...) // with the connection just made
			c.a.s.expectOK(0, n)
			c.b.r.expectGot(n, 64)
			dst.holds(src.data())
		}},
	{ID: "cm/passive-first", Clause: "IBTA 12*; RFC 6581 §9",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatPassiveFirst},
		Requirement: "The accepting side may send first.", Run: func(e *Env) {
			c := e.connect(connOpts{noHello: true, ready: func(c *conn) { c.a.postRecv(recv(1)) }})
			c.b.do(send(1))
			c.a.r.expect(got(1, 0))
			c.works()
		}},
	{ID: "cm/passive-waits", Clause: "RFC 5044 §7.1.2 (4)", Needs: needSend, Without: rdma.FeatPassiveFirst,
		Requirement: "A send of the accepting side before the first message is held back or refused, and the " +
			"connection is unharmed.", Run: func(e *Env) {
			o := connOpts{noHello: true}
			o.ready = func(c *conn) { c.a.postRecv(recv(1)); c.b.postRecv(recv(2)) }
			c := e.connect(o)
			_, err := c.b.tryPost(send(1))
			if err != nil {
				e.Note("refused: %v", err)
				c.b.state(rdma.QPRTS)
			} else {
				c.a.r.silent("nothing from b before a has sent")
				e.Note("held back")
			}
			c.a.do(send(2))
			c.b.r.expect(got(2, 0))
			if err != nil {
				c.b.post(send(1))
			}
			c.b.s.expect(ok(1))
			c.a.r.expect(got(1, 0))
		}},
	{ID: "cm/over-ipv6", Clause: "man rdma_bind_addr; man rdma_resolve_addr", IPv6: true, Needs: needSendWrite,
		Requirement: "A connection over IPv6 is one like any other, and its ends tell addresses of IPv6.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, addr := range []string{e.listen().Addr(), c.fromAddr} {
				at, err := netip.ParseAddrPort(addr)
				if err != nil || !at.Addr().Is6() || at.Addr().Is4In6() || at.Port() == 0 {
					e.failf("an address of IPv6 with its port", "%q", addr)
				}
			}
			c.works()
			flow{n: 50, size: 1000, srcSlots: 4, dstSlots: 8}.run(c.a, c.b)
		}},
}

func (e *Env) padded(what string, got, sent []byte) {
	if !bytes.HasPrefix(got, sent) || len(bytes.Trim(got[len(sent):], "\x00")) > 0 {
		e.failf(fmt.Sprintf("%s: %d bytes as sent", what, len(sent)), "%d others", len(got))
	}
}
