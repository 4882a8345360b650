package conform

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// IMM: send with immediate.
var immCases = []Case{
	{ID: "imm/value", Clause: "IBTA 9.4.1*; RFC 7306 §6; man ibv_poll_cq (IBV_WC_WITH_IMM)", Needs: needSendImm,
		Requirement: "The 32 bits of immediate arrive as they were posted, and the completion says that they are " +
			"there.", Run: func(e *Env) {
			// The immediate is not part of the receive's memory.
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 100, localOnly)
			dst.fill(1)
			dst.freeze()
			for i, v := range immValues {
				c.message(sendImm(i, v), recv(i, dst.all()))
			}
			dst.unchanged("by immediates")
		}},
	{ID: "imm/payload", Clause: "IBTA 9.4.1*; RFC 7306 §6 knows no such message", Needs: needImmPayload,
		Requirement: "A send with immediate delivers its bytes and its immediate in one completion.",
		Run: func(e *Env) {
			c, src, dst := e.sending(100)
			for i, v := range immValues {
				src.fill(uint64(i))
				c.message(sendImm(i, v, src.all()), recv(i, dst.all()))
				dst.holds(src.data())
			}
		}},
	{ID: "imm/zero-length", Clause: "IBTA 9.4.1*", Needs: needSendImm,
		Requirement: "A message of 0 bytes carries its immediate.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.message(sendImm(1, 0xcafe0001), recv(1))
		}},
	{ID: "imm/flag-clear", Clause: "man ibv_poll_cq", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpSendImm)},
		Requirement: "The flag is present exactly on messages that carry an immediate: the value 0 is a value.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i := range 8 {
				wr := send(i) // its receive must have every flag clear
				if i%2 == 0 {
					wr = sendImm(i, 0)
				}
				c.message(wr, recv(i))
			}
		}},
}

var immValues = []uint32{0x01020304, 0, 1, 0x80000000, 0xffffffff}

// WIM: write with immediate.
var wimCases = []Case{
	{ID: "wim/delivers", Clause: "IBTA 9.4.3*; RFC 7306 §6; man ibv_poll_cq (IBV_WC_RECV_RDMA_WITH_IMM)",
		Needs: needWriteImm, Requirement: "The bytes are at the target when the receive completes with the immediate " +
			"and the written length; the receive's own buffer is untouched.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			own := e.region(c.b, "receive", 64, localOnly)
			own.fill(99)
			own.freeze()
			for i, size := range []int{1, 64, 5000, 70000} {
				src, dst := c.writing(size + 2)
				src.fill(uint64(i))
				dst.blank()
				c.message(writeImm(i, uint32(i), dst.at(1), src.sge(0, size)), recv(i, own.all()))
				dst.holdsOnly(1, src.data()[:size])
			}
			own.unchanged("by writes with immediate")
		}},
	{ID: "wim/zero-any-key", Clause: "IBTA C9-88", Needs: needWriteImm,
		Requirement: "A write with immediate of 0 bytes is delivered whatever its key and address.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 64, remoteAll)
			dst.freeze()
			for i, t := range []target{dst.at(0), {}, {0, 0xdeadbeef}, {^uint64(0), dst.mr.RKey()}} {
				c.message(writeImm(i, uint32(100+i), t), recv(i))
			}
			dst.unchanged("by writes of 0 bytes")
		}},
	{ID: "wim/bad-key", Clause: "IBTA C9-222.1.1", Needs: needWriteImm,
		Requirement: "A write with immediate under a wrong key is refused, writes nothing and delivers no immediate.",
		Run: func(e *Env) {
			c, src, dst := e.writing(64)
			dst.freeze()
			c.b.postRecv(recv(1))
			c.refusal(c.a, accessRefused(0x1100), writeImm(1, 7, dst.badKey(), src.all()))
			c.b.r.expect(recvFails(1, rdma.StatusWRFlushErr, rdma.StatusLocAccessErr, rdma.StatusLocProtErr,
				rdma.StatusRemAccessErr))
			c.dead()
			dst.unchanged("by a refused write")
		}},
	{ID: "wim/no-receive", Clause: "IBTA 9.7.5.2.8",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWriteImm), Features: rdma.FeatRNRRetry}, Requirement: "A write with " +
			"immediate that finds no receive ends with RNR_RETRY_EXC_ERR when no retry is allowed.", Run: func(e *Env) {
			c := e.rnrRetries(0)
			src, dst := c.writing(8)
			dst.freeze()
			c.noReceive(writeImm(1, 7, dst.at(0), src.all()))
			c.a.flushesLater()
			// The specification lets the data be placed or not.
			e.Note("data placed: %v", string(dst.data()) != string(dst.frozen))
		}},
	{ID: "wim/ends-connection",
		Clause: "RFC 7306 §6.3 (consumes an untagged buffer); RFC 5041 §7.1 (MSN: no buffer available)",
		Needs:  needWriteImm, Without: rdma.FeatRNRRetry,
		Requirement: "Without retries, a write with immediate that finds no receive ends the connection at both ends.",
		Run: func(e *Env) {
			// The data may have been placed: on iWARP the Write is a message of its own.
			c, src, dst := e.writing(8)
			c.refuses(c.a, noReceive, writeImm(1, 7, dst.at(0), src.all()))
		}},
}

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
