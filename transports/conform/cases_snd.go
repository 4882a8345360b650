package conform

import (
	"bytes"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// SND: send and receive.
var sndCases = []Case{
	{ID: "snd/sizes", Clause: "IBTA 9.4.1*; RFC 5041 §5", Needs: needSend,
		Requirement: "Messages of every length from 0 arrive whole, with the exact byte_len.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, size := range e.messageSizes() {
				src, dst := c.sending(size + 7)
				src.fill(uint64(i))
				dst.blank()
				c.message(send(i, src.sge(3, size)), recv(i, dst.sge(5, size)))
				dst.holdsOnly(5, src.data()[3:3+size])
			}
		}},
	{ID: "snd/both-directions", Clause: "IBTA 9.4.1*; RFC 5040 §5.5 (2)", Needs: needSend,
		Requirement: "The two directions of a connection are independent streams of messages.", Run: func(e *Env) {
			const size, slots = 700, 8
			c := e.connect(connOpts{})
			n := e.loops(300, 10000)
			type side struct{ out, in *region }
			sides := map[*end]side{}
			for _, x := range []*end{c.a, c.b} {
				s := side{e.region(x, "out", size, localOnly), e.region(x, "in", slots*size, localOnly)}
				s.out.fill(uint64(len(sides)))
				for i := range slots {
					x.postRecv(recv(i, s.in.sge(i*size, size)))
				}
				sides[x] = s
			}
			for i := range n {
				c.a.post(send(i, sides[c.a].out.all()))
				c.b.post(send(i, sides[c.b].out.all()))
				for _, x := range []*end{c.a, c.b} {
					x.s.expect(ok(i))
					x.r.expect(got(i, size))
					at := i % slots * size
					e.equal(sides[x].in.name, sides[x].in.data()[at:at+size], sides[c.other(x)].out.data())
					if i+slots < n {
						x.postRecv(recv(i+slots, sides[x].in.sge(at, size)))
					}
				}
			}
		}},
	{ID: "snd/no-elements", Clause: "IBTA 10.7.3.2*; man ibv_post_send", Needs: needSend,
		Requirement: "A send and a receive without scatter/gather elements carry a message of 0 bytes.",
		Run: func(e *Env) {
			c, src, dst := e.sending(16)
			dst.freeze()
			for _, v := range []struct {
				s rdma.SendWR
				r rdma.RecvWR
			}{
				{send(0), recv(0)},
				{send(1), recv(1, dst.all())},
				{send(2, src.sge(4, 0)), recv(2)},
				{send(3, src.sge(4, 0)), recv(3, dst.sge(4, 0))},
			} {
				c.message(v.s, v.r)
			}
			dst.unchanged("by messages of 0 bytes")
		}},
	{ID: "snd/zero-bad-key", Clause: "IBTA 10.7.3.2*", Level: May, Needs: needSend,
		Requirement: "An element of 0 bytes with an unknown key succeeds, or is refused as a local protection fault.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.postRecv(recv(1))
			n, err := c.a.tryPost(send(1, rdma.SGE{Addr: 8, Len: 0, LKey: 0xdead}))
			if n == 0 {
				e.Note("refused at once: %v", err)
				return
			}
			wc := c.a.s.next("send#1")
			e.Note("%s", wc.Status)
			if wc.Status == rdma.StatusSuccess {
				c.b.r.expect(got(1, 0))
			} else if wc.Status != rdma.StatusLocProtErr {
				e.failf("success or local protection error", "%s", wc.Status)
			}
		}},
	{ID: "snd/gather-scatter", Clause: "man ibv_create_qp (max_send_sge, max_recv_sge)", Needs: needSendTwoSGE,
		Requirement: "Elements of odd lengths are concatenated on the way out and filled one after the other on the " +
			"way in.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			lens := []int{1, 7, 4097, 255}[:e.Caps.MaxSGE]
			in := []int{300, 1, 2, 5000}[4-e.Caps.MaxSGE:]
			src := e.region(c.a, "src", 8192, localOnly)
			dst := e.region(c.b, "dst", 16384, localOnly)
			src.fill(1)
			dst.blank()
			var gather, scatter []rdma.SGE
			var sent []byte
			for i, n := range lens {
				off := 4800 - i*1301 // neither in address order nor adjacent
				if i == 2 {
					off = 0
				}
				gather = append(gather, src.sge(off, n))
				sent = append(sent, src.data()[off:off+n]...)
			}
			offs := make([]int, len(in))
			for i, n := range in {
				offs[i] = 12000 - i*1999 // behind the long element
				if n == 5000 {
					offs[i] = 100
				}
				scatter = append(scatter, dst.sge(offs[i], n))
			}
			c.message(send(1, gather...), recv(1, scatter...))
			want := bytes.Repeat([]byte{blank}, dst.n)
			for i, n := range in {
				sent = sent[copy(want[offs[i]:offs[i]+n], sent):]
			}
			if len(sent) > 0 {
				panic(halt{fmt.Errorf("scatter list is %d bytes too short", len(sent))})
			}
			dst.holds(want)
		}},
	{ID: "snd/too-many-elements", Clause: "man ibv_post_send", Needs: needSend,
		Requirement: "More elements than the device can take are refused at once.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, localOnly)
			wr := send(1, src.sge(0, 1))
			wr.NumSGE = uint8(e.Caps.MaxSGE + 1)
			if n, err := c.a.tryPost(wr); n != 0 || err == nil {
				e.failf(fmt.Sprintf("send with %d elements refused at once", wr.NumSGE), "taken")
			}
			rwr := recv(1, src.sge(0, 1))
			rwr.NumSGE = uint8(e.Caps.MaxSGE + 1)
			if n, err := c.a.tryRecv(rwr); n != 0 || err == nil {
				e.failf(fmt.Sprintf("receive with %d elements refused at once", rwr.NumSGE), "taken")
			}
			c.a.state(rdma.QPRTS)
			c.works()
		}},
	{ID: "snd/longer-receive", Clause: "IBTA 9.7*; RFC 5041 §5", Needs: needSend,
		Requirement: "A message shorter than its receive leaves the rest of the buffer untouched.", Run: func(e *Env) {
			c, src, dst := e.sending(5000)
			for i, n := range []int{0, 1, 999, 1000} {
				dst.blank()
				c.message(send(i, src.sge(0, n)), recv(i, dst.all()))
				dst.holdsOnly(0, src.data()[:n])
			}
		}},
	{ID: "snd/short-receive", Clause: "IBTA 9.9.2.3*; RFC 5041 §7.1 (message too long)", Needs: needSend,
		Requirement: "A message longer than its receive fails at both ends, and no byte lands behind the receive.",
		Run: func(e *Env) {
			for _, v := range []struct{ room, size int }{{8, 9}, {0, 1}, {100, 70000}} {
				c, src, dst := e.sending(max(v.size, v.room+2000))
				dst.blank()
				c.b.postRecv(recv(1, dst.sge(0, v.room)), recv(2, dst.sge(v.room, 1000)))
				c.refusal(c.a, requestRefused(0x1205), send(1, src.sge(0, v.size)))
				c.b.r.expect(recvFails(1, c.either(rdma.StatusLocLenErr)...))
				c.dead()
				e.allBytes(dst.name+": bytes behind the short receive", dst.data()[v.room:], blank)
			}
		}},
	{ID: "snd/receive-bad-key", Clause: "IBTA 9.9.3*; RFC 5041 §7.1", Needs: needSend,
		Requirement: "A receive whose key is unknown is refused when posted, or fails the message at both ends.",
		Run: func(e *Env) {
			c, src, dst := e.sending(64)
			g := dst.all()
			g.LKey ^= 0x10101
			if n, err := c.b.tryRecv(recv(1, g)); n == 0 {
				e.Note("refused at once: %v", err)
				c.works()
				return
			}
			c.receiveFails(src, dst)
		}},
	{ID: "snd/receive-revoked", Clause: "IBTA 9.9.3*; RFC 5041 §7.1", Needs: needSend, Without: rdma.FeatKeepsKeys,
		Requirement: "A receive whose registration was closed after the post fails the message, and its memory is " +
			"not touched.", Run: func(e *Env) {
			c, src, dst := e.sending(64)
			c.b.postRecv(recv(1, dst.all()))
			e.must("close registration", dst.mr.Close())
			dst.blank()
			c.receiveFails(src, dst)
		}},
	{ID: "snd/receive-beyond-region", Clause: "IBTA silent", Level: May, Needs: needSend,
		Requirement: "A receive that reaches beyond its registration, with a message that would fit, succeeds or " +
			"fails as a protection fault.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, localOnly)
			dst := e.exact(c.b, "dst", 1000, localOnly)
			g := dst.sge(900, 200)
			if n, err := c.b.tryRecv(recv(1, g)); n == 0 {
				e.Note("refused at once: %v", err)
				return
			}
			c.a.post(send(1, src.all()))
			wc := c.b.r.next("recv#1")
			e.Note("%s", wc.Status)
			switch wc.Status {
			case rdma.StatusSuccess, rdma.StatusLocProtErr, rdma.StatusLocAccessErr, rdma.StatusLocLenErr,
				rdma.StatusWRFlushErr:
			default:
				e.failf("success or a protection error", "%s", wc.Status)
			}
			c.a.s.next("send#1")
		}},
	{ID: "snd/queue-wrap", Clause: "man ibv_post_send", Needs: needSend,
		Requirement: "Queues can be filled and emptied any number of times.", Run: func(e *Env) {
			depth := e.deep(7) // no power of two: a ring index that is masked wraps wrongly
			c := e.connect(connOpts{depth: depth, rdepth: depth})
			src, dst := c.sending(32 * depth)
			for round := range e.loops(200, 10000) {
				src.fill(uint64(round))
				c.b.recvSlots(depth, dst, 32)
				c.a.doEach(depth, func(i int) rdma.SendWR { return send(i, src.sge(32*i, 32)) })
				c.b.r.expectGot(depth, 32)
				dst.holds(src.data())
			}
		}},
	{ID: "snd/send-queue-full", Clause: "man ibv_post_send (ENOMEM)", Needs: needWrite,
		Requirement: "A full send queue refuses the next request, executes what it took, and has room again after " +
			"polling.", Run: func(e *Env) {
			depth := e.deep(8)
			c := e.connect(connOpts{depth: depth, cqDepth: min(4*depth+2048, e.Caps.MaxCQE)})
			src, dst := c.writing(64)
			taken := e.fillQueue("send queue", depth, func(i int) error {
				_, err := c.a.tryPost(write(i, dst.at(0), src.all()))
				return err
			})
			c.a.s.expectOK(0, taken)
			c.a.state(rdma.QPRTS)
			c.writes(src, dst)
			// A list that does not fit is taken as far as it fits.
			list := make([]rdma.SendWR, taken+4)
			for i := range list {
				list[i] = write(i, dst.at(0), src.all())
			}
			n, err := c.a.tryPost(list...)
			e.refusedWith("list longer than the queue", err, rdma.ErrQueueFull)
			if n < depth {
				e.failf(fmt.Sprintf("at least %d requests of the list taken", depth), "%d", n)
			}
			c.a.s.expectOK(0, n)
		}},
	{ID: "snd/receive-queue-full", Clause: "man ibv_post_recv (ENOMEM)", Needs: needSend,
		Requirement: "A full receive queue refuses the next request and keeps those that it took.", Run: func(e *Env) {
			depth := e.deep(8)
			c := e.connect(connOpts{rdepth: depth, cqDepth: min(4*depth+2048, e.Caps.MaxCQE)})
			dst := e.region(c.b, "dst", 64, localOnly)
			taken := e.fillQueue("receive queue", depth, func(i int) error {
				_, err := c.b.tryRecv(recv(i, dst.all()))
				return err
			})
			for i := range taken {
				c.a.do(send(i))
				c.b.r.expect(got(i, 0))
			}
			c.works()
		}},
	{ID: "snd/list", Clause: "man ibv_post_send (next)", Needs: needSend,
		Requirement: "A list of requests is the same as one post after the other.", Run: func(e *Env) {
			n := e.deep(32)
			c := e.connect(connOpts{depth: n, rdepth: n})
			src, dst := c.sending(n * 40)
			for round := range e.loops(20, 1000) {
				src.fill(uint64(round))
				sends, recvs := make([]rdma.SendWR, n), make([]rdma.RecvWR, n)
				for i := range n {
					sends[i], recvs[i] = send(i, src.sge(40*i, 40)), recv(i, dst.sge(40*i, 40))
				}
				c.b.postRecv(recvs...)
				c.a.post(sends...)
				// The lists are ours again: changing them must not change what was posted.
				clear(sends)
				clear(recvs)
				c.a.s.expectOK(0, n)
				c.b.r.expectGot(n, 40)
				dst.holds(src.data())
			}
		}},
}
