package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// INL: inline data.
var inlCases = []Case{
	{ID: "inl/overwrite-after-post", Clause: "man ibv_post_send NOTES", Needs: needInline,
		Requirement: "The buffer of an inline request may be changed as soon as the post returns: the bytes of the " +
			"post are sent.", Run: func(e *Env) {
			limit := e.inlineLimit()
			c := e.connect(connOpts{inline: limit})
			src, dst := c.writing(limit)
			want := make([]byte, limit)
			n := 0
			for _, size := range []int{0, 1, 2, 3, 4, 31, 63, 64, 65, limit / 2, limit - 1, limit} {
				if size < 0 || size > limit {
					continue
				}
				for _, wr := range []rdma.SendWR{send(n, src.sge(0, size)), write(n, dst.at(0), src.sge(0, size))} {
					src.fill(uint64(n))
					copy(want, src.data())
					dst.blank()
					if wr.Op == rdma.OpSend {
						c.b.postRecv(recv(n, dst.all()))
					}
					c.a.post(inline(wr))
					fillByte(src.data(), 0xFF)
					c.a.s.expect(ok(n))
					if wr.Op == rdma.OpSend {
						c.b.r.expect(got(n, size))
					} else {
						c.barrier()
					}
					e.equal(fmt.Sprintf("%s: inline %s of %d bytes", dst.name, wr.Op, size), dst.data()[:size],
						want[:size])
					e.allBytes(dst.name+": bytes behind", dst.data()[size:], blank)
				}
				n++
			}
		}},
	{ID: "inl/key-unchecked", Clause: "man ibv_post_send (IBV_SEND_INLINE)", Needs: needInline,
		Requirement: "\"The L_Key will not be checked\": inline data needs no registration.", Run: func(e *Env) {
			size := min(8, e.inlineLimit())
			c := e.connect(connOpts{inline: size})
			mem := e.memory("unregistered", 64)
			pattern(mem.buf.Bytes(), 7)
			mem.lo, mem.n = 0, 64
			dst := e.region(c.b, "dst", 64, remoteAll)
			c.message(inline(send(1, rdma.SGE{Addr: mem.buf.Addr() + 3, Len: uint32(size), LKey: 0xdeadbeef})),
				recv(1, dst.all()))
			e.equal(dst.name, dst.data()[:size], mem.buf.Bytes()[3:3+size])
		}},
	{ID: "inl/over-max", Clause: "man ibv_post_send; man ibv_create_qp (max_inline_data)", Needs: needInline,
		Requirement: "Inline data above the limit is refused at once.", Run: func(e *Env) {
			limit := e.Caps.MaxInline
			c := e.connect(connOpts{inline: limit})
			src := e.region(c.a, "src", limit+1, localOnly)
			if n, err := c.a.tryPost(inline(send(1, src.all()))); n != 0 || err == nil {
				e.failf(fmt.Sprintf("%d inline bytes refused at once", limit+1), "taken")
			}
			c.a.state(rdma.QPRTS)
			c.works()
		}},
	{ID: "inl/gather", Clause: "man ibv_post_send", Needs: needInlineSGE,
		Requirement: "Inline data of several elements is concatenated.", Run: func(e *Env) {
			limit := min(e.inlineLimit(), 600)
			c := e.connect(connOpts{inline: limit})
			src, dst := c.sending(1024)
			first := limit / 3
			var sent []byte
			sent = append(sent, src.data()[700:700+first]...)
			sent = append(sent, src.data()[:limit-first]...)
			c.b.postRecv(recv(1, dst.all()))
			c.a.post(inline(send(1, src.sge(700, first), src.sge(0, limit-first))))
			fillByte(src.data(), 0xFF)
			c.a.s.expect(ok(1))
			c.b.r.expect(got(1, limit))
			e.equal(dst.name, dst.data()[:limit], sent)
		}},
	{ID: "inl/read-refused", Clause: "man ibv_post_send: inline is \"valid only for Send and RDMA Write\"",
		Needs: needInlineRd, Requirement: "An inline read is refused.", Run: func(e *Env) {
			c := e.connect(connOpts{inline: 8})
			src, sink := c.reading(8)
			c.localFault(inline(read(1, src.at(0), sink.all())), sink, rdma.StatusLocQPOpErr)
		}},
}

func (e *Env) inlineLimit() int { return min(e.Caps.MaxInline, 4096) }
