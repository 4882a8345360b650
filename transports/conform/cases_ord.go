package conform

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ORD: ordering and completion semantics.
var ordCases = []Case{
	{ID: "ord/mixed-order", Clause: "IBTA 10.8.5*; RFC 5040 §5.5 (15)", Needs: needSendWriteRead,
		Requirement: "Sends, writes and reads of one QP complete in the order in which they were posted.",
		Run: func(e *Env) {
			const size = 256
			c := e.connect(connOpts{depth: e.deep(32), rdepth: e.deep(32)})
			src := e.region(c.a, "src", size, e.sinkAccess())
			dst := e.region(c.b, "dst", size, remoteAll)
			in := e.region(c.b, "receives", size, localOnly)
			src.fill(1)
			n := e.loops(2000, 10000)
			// credits are receives posted that no send was posted for.
			credits, nextRecv, wantRecv := 0, 0, 0
			postRecv := func() {
				c.b.postRecv(recv(nextRecv, in.all()))
				nextRecv++
				credits++
			}
			for range e.deep(32) {
				postRecv()
			}
			recvs := func(wait bool) {
				if wait {
					e.waitFor("b receives", func() bool { return len(c.b.r.done) > 0 })
				}
				for ; len(c.b.r.done) > 0; wantRecv++ {
					c.b.r.expect(got(wantRecv, size))
					postRecv()
				}
			}
			completed, sends := 0, 0
			for i := range n {
				recvs(false)
				wr := write(i, dst.at(0), src.all())
				switch e.Rand.IntN(3) {
				case 0:
					wr = read(i, dst.at(0), src.all())
				case 1:
					if credits == 0 {
						recvs(true)
					}
					credits--
					sends++
					wr = send(i, src.all())
				}
				c.a.push(wr)
				for ; len(c.a.s.done) > 0; completed++ {
					c.a.s.expect(ok(completed))
				}
			}
			c.a.s.expectOK(completed, n)
			for wantRecv < sends {
				recvs(true)
			}
		}},
	{ID: "ord/recv-order", Clause: "IBTA 10.8*; RFC 5040 §5.5 (10), RFC 5041 §5.3", Needs: needSend,
		Requirement: "Messages are matched with receives in the order in which both were posted.", Run: func(e *Env) {
			c := e.connect(connOpts{depth: e.deep(64), rdepth: e.deep(64)})
			flow{n: e.loops(2000, 20000), size: 16, srcSlots: e.deep(64), dstSlots: e.deep(64)}.run(c.a, c.b)
		}},
	{ID: "ord/write-then-send", Clause: "IBTA 9.5*; RFC 5040 §5.5 (5, 10)", Needs: needSendWrite,
		Requirement: "When a send is delivered, the bytes of every earlier write of the QP are visible.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, size := range []int{8, 64, 4096, 20000} {
				src, dst := c.writing(size)
				for i := range e.loops(300, 20000) {
					src.fill(uint64(i))
					c.b.postRecv(recv(i))
					c.a.post(unsignaled(write(i, dst.at(0), src.all())), send(1000000+i))
					c.b.r.expect(got(i, 0))
					e.equal(fmt.Sprintf("%s at the delivery of send %d", dst.name, i), dst.data(), src.data())
					c.a.s.expect(ok(1000000 + i))
				}
			}
		}},
	{ID: "ord/write-write-send", Clause: "IBTA 9.5*; RFC 5040 §5.5 (3) leaves it open", Needs: needSendWrite,
		Requirement: "Of two writes to one address, the later holds at the delivery of a following send. iWARP may " +
			"place them in any order: there it is recorded.", Run: func(e *Env) {
			const size = 3000
			c, first, dst := e.writing(size)
			second := e.region(c.a, "second", size, localOnly)
			for i := range e.loops(200, 5000) {
				first.fill(uint64(2 * i))
				second.fill(uint64(2*i + 1))
				c.b.postRecv(recv(i))
				c.a.do(unsignaled(write(1, dst.at(0), first.all())), unsignaled(write(2, dst.at(0), second.all())),
					send(3))
				c.b.r.expect(got(i, 0))
				e.lastHolds(dst, first.data(), second.data())
			}
		}},
	{ID: "ord/write-then-read", Clause: "IBTA 10.8.3.3; RFC 5040 §5.5 (12)", Needs: needWriteRead,
		Requirement: "A read returns what an earlier write of the same QP has written, without a fence.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, size := range []int{1, 64, 5000, 70000} {
				src, dst := c.writing(size)
				back := e.region(c.a, "back", size, e.sinkAccess())
				for i := range e.loops(50, 2000) {
					src.fill(uint64(i))
					c.a.do(write(1, dst.at(0), src.all()), read(2, dst.at(0), back.all()))
					e.equal(back.name+" holds what was written before", back.data(), src.data())
				}
			}
		}},
	{ID: "ord/read-then-write", Clause: "IBTA 10.8.3.3; RFC 5040 §5.5 (12)", Level: May, Needs: needWriteRead,
		Requirement: "A read followed by an unfenced write of the same 8 bytes returns the old or the new value.",
		Run: func(e *Env) {
			c, src, dst := e.writing(8)
			back := e.region(c.a, "back", 8, e.sinkAccess())
			olds, news := 0, 0
			for i := range e.loops(100, 2000) {
				dst.fill(uint64(2 * i))
				dst.freeze()
				src.fill(uint64(2*i + 1))
				c.a.do(read(1, dst.at(0), back.all()), write(2, dst.at(0), src.all()))
				switch v := string(back.data()); {
				case v == string(dst.frozen):
					olds++
				case v == string(src.data()):
					news++
				default:
					e.failf("the old or the new 8 bytes", "%#x, a mixture", v)
				}
				c.barrier()
				e.equal(dst.name+" after the write", dst.data(), src.data())
			}
			e.Note("read returned the old value %d times, the new one %d times", olds, news)
		}},
	{ID: "ord/unsignaled-retire", Clause: "IBTA 10.7.3.1", Needs: needWrite,
		Requirement: "One completion retires all earlier unsignalled requests: their queue places can be used again.",
		Run: func(e *Env) {
			depth := e.deep(64)
			c := e.connect(connOpts{depth: depth})
			src, dst := c.writing(8)
			for round := range e.loops(20, 200) {
				binary.NativeEndian.PutUint64(src.data(), uint64(round))
				list := make([]rdma.SendWR, depth)
				for i := range list {
					list[i] = unsignaled(write(i, dst.at(0), src.all()))
				}
				list[depth-1].Flags |= rdma.Signaled
				c.a.do(list...) // the queue is full: a place that was not retired is missing here
			}
		}},
	{ID: "ord/unsignaled-silent", Clause: "IBTA 10.7.3.1", Needs: needSendWrite,
		Requirement: "An unsignalled request that succeeds makes no completion.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			for i := range 8 {
				c.a.post(unsignaled(write(i, dst.at(0), src.all())))
			}
			c.b.postRecv(recv(8))
			c.a.post(unsignaled(send(8)))
			c.b.r.expect(got(8, 0))
			c.barrier() // its completion comes behind any that should not be there
			dst.holds(src.data())
		}},
	{ID: "ord/unsignaled-error", Clause: "IBTA 10.7.3.1", Needs: needRead,
		Requirement: "An unsignalled request that fails makes a completion.", Run: func(e *Env) {
			c, src, sink := e.reading(64)
			c.noEffect(accessRefused(0x0100, 0x1100), unsignaled(read(1, src.badKey(), sink.all())), sink)
		}},
	{ID: "ord/unsignaled-reuse", Clause: "IBTA 10.7.3.1", Needs: needSendWrite,
		Requirement: "The buffers of unsignalled requests may be changed as soon as a later completion of the queue " +
			"is polled.", Run: func(e *Env) {
			// Messages of many pages, because some devices lend these to the layer below, and more
			// of them than it sends at once.
			const size = 32 << 10
			depth := e.deep(48)
			c := e.connect(connOpts{depth: depth})
			src, dst := c.writing(depth * size)
			for round := range e.loops(4, 50) {
				src.fill(uint64(round))
				want := bytes.Clone(src.data())
				for i := range depth - 1 {
					c.a.post(unsignaled(write(i, dst.at(i*size), src.sge(i*size, size))))
				}
				last := (depth - 1) * size
				c.a.do(write(depth-1, dst.at(last), src.sge(last, size)))
				fillByte(src.data(), byte(round))
				c.barrier()
				dst.holds(want)
			}
		}},
	{ID: "ord/sig-all", Clause: "man ibv_create_qp (sq_sig_all)", Needs: needWrite,
		Requirement: "With sq_sig_all every request makes a completion, whatever its flags.", Run: func(e *Env) {
			c := e.connect(connOpts{sigAll: true})
			src, dst := c.writing(64)
			c.a.doEach(8, func(i int) rdma.SendWR { return unsignaled(write(i, dst.at(0), src.all())) })
		}},
	{ID: "ord/reads-beyond-ord", Clause: "IBTA 9.7*; RFC 5040 §6.1", Needs: needRead,
		Requirement: "More reads than ORD may be posted: the requester holds the rest back and all complete in order.",
		Run: func(e *Env) {
			const size, n = 512, 32
			depth := e.deep(n)
			for _, ord := range []int{1, min(2, e.Caps.MaxRDAtom)} {
				c := e.connectWith(rdma.ConnParam{IRD: ord, ORD: ord, RNRRetry: 7}, connOpts{depth: depth})
				if c.pa.ORD > ord {
					e.failf(fmt.Sprintf("ORD of at most %d", ord), "%d", c.pa.ORD)
				}
				src, sink := c.reading(n * size)
				src.fill(uint64(ord))
				for range 4 {
					fillByte(sink.data(), 0)
					c.a.doEach(depth, func(i int) rdma.SendWR {
						return read(i, src.at(i*size), sink.sge(i*size, size))
					})
					e.equal(sink.name, sink.data()[:depth*size], src.data()[:depth*size])
				}
			}
		}},
	{ID: "ord/read-data-in-order", Clause: "RFC 5040 §5.5 (11, 15, 20)", Needs: needRead,
		Requirement: "When a read completes, its data and that of every earlier read are in place.", Run: func(e *Env) {
			const size, n = 3001, 16
			depth := e.deep(n)
			c := e.connect(connOpts{depth: depth})
			src, sink := c.reading(n * size)
			for round := range e.loops(30, 1000) {
				src.fill(uint64(round))
				fillByte(sink.data(), 0)
				for i := range depth {
					c.a.post(read(i, src.at(i*size), sink.sge(i*size, size)))
				}
				for i := range depth {
					c.a.s.expect(ok(i))
					end := (i + 1) * size
					e.equal(fmt.Sprintf("data of read %d and before, at its completion", i), sink.data()[:end],
						src.data()[:end])
				}
			}
		}},
	{ID: "ord/two-qps-one-cq", Clause: "IBTA 10.2.5*", Needs: needWrite,
		Requirement: "Two QPs on one CQ keep their order each, and no completion is lost or exchanged.",
		Run: func(e *Env) {
			depth := e.deep(16)
			c1, c2 := e.sharedCQs(4*depth, connOpts{depth: depth})
			src, dst := c1.writing(64)
			n := e.loops(500, 10000)
			conns, done := [2]*conn{c1, c2}, [2]int{}
			for i := range n {
				for k, c := range conns {
					c.a.push(write(i, dst.at(0), src.all()))
					for ; len(c.a.s.done) > 0; done[k]++ {
						c.a.s.expect(ok(done[k]))
					}
				}
			}
			for k, c := range conns {
				c.a.s.expectOK(done[k], n)
			}
		}},
	{ID: "ord/buffer-reuse", Clause: "man ibv_post_send NOTES; RFC 5040 §5.5 (14)", Needs: needSend,
		Requirement: "The buffer of a send may be changed as soon as its completion is polled.", Run: func(e *Env) {
			c := e.connect(connOpts{rdepth: e.deep(32)})
			for _, size := range []int{64, 4096, 40000} {
				flow{n: e.loops(500, 20000), size: size, srcSlots: 1, dstSlots: e.deep(32)}.run(c.a, c.b)
			}
		}},
	{ID: "ord/last-byte-last", Clause: "a promise of the device; RFC 5040 §5.5 (5) and IBTA o9-20* do not make it",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpWrite), Features: rdma.FeatLastByteLast},
		Requirement: "A target that sees the last byte of a write sees all its bytes.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for _, size := range []int{1, 8, 64, 1500, 9000, 100000} {
				src, dst := c.writing(size)
				for i := range e.loops(100, 5000) {
					src.fill(uint64(i))
					flag := byte(i%255 + 1) // differs from the flag before and from the zero at first
					src.data()[size-1] = flag
					c.a.post(write(1, dst.at(0), src.all()))
					e.waitFor(dst.name+": last byte", func() bool { return rdma.LoadByte(dst.data(), size-1) == flag })
					e.equal(dst.name+" when its last byte shows", dst.data(), src.data())
					c.a.s.expect(ok(1))
				}
			}
		}},
}

// lastHolds requires the second of two transfers, or any mixture where the specification leaves their order open.
func (e *Env) lastHolds(r *region, first, second []byte) {
	if e.Caps.Completion == rdma.CompletionAck || bytes.Equal(r.data(), second) {
		e.equal(r.name+" holds the later transfer", r.data(), second)
		return
	}
	for i, b := range r.data() {
		if b != first[i] && b != second[i] {
			e.failf(fmt.Sprintf("%s: byte %d of either transfer", r.name, i), "%#02x", b)
		}
	}
	e.Note("placed out of order")
}
