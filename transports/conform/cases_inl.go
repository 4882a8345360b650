package conform

import (
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var (
	needInline    = rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatInline, Inline: 1}
	needInlineSGE = rdma.Need{Ops: rdma.Ops(rdma.OpSend), Features: rdma.FeatInline, Inline: 2, SGE: 2}
	needInlineRd  = rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatInline, Inline: 8}
	needSendImm   = rdma.Need{Ops: rdma.Ops(rdma.OpSendImm)}
	needWriteImm  = rdma.Need{Ops: rdma.Ops(rdma.OpWriteImm)}
)

// INL: inline data.
var inlCases = []Case{
	{ID: "inl/overwrite-after-post", Clause: "man ibv_post_send NOTES", Needs: needInline,
		Requirement: "The buffer of an inline request may be changed as soon as the post returns: the bytes of the post are sent.",
		Run:         inlOverwrite},
	{ID: "inl/key-unchecked", Clause: "man ibv_post_send (IBV_SEND_INLINE)", Needs: needInline,
		Requirement: "\"The L_Key will not be checked\": inline data needs no registration.",
		Run:         inlKeyUnchecked},
	{ID: "inl/over-max", Clause: "man ibv_post_send; man ibv_create_qp (max_inline_data)", Needs: needInline,
		Requirement: "Inline data above the limit is refused at once.",
		Run:         inlOverMax},
	{ID: "inl/gather", Clause: "man ibv_post_send", Needs: needInlineSGE,
		Requirement: "Inline data of several elements is concatenated.",
		Run:         inlGather},
	{ID: "inl/read-refused", Clause: "man ibv_post_send: inline is \"valid only for Send and RDMA Write\"", Needs: needInlineRd,
		Requirement: "An inline read is refused.",
		Run:         inlReadRefused},
}

// inlineLimit is the most inline bytes that the cases use.
func (e *Env) inlineLimit() int { return min(e.Caps.MaxInline, 4096) }

func inlOverwrite(_ context.Context, e *Env) error {
	limit := e.inlineLimit()
	c := e.connect(connOpts{inline: limit})
	src := e.region(c.a, "src", limit, localOnly)
	dst := e.region(c.b, "dst", limit, remoteAll)
	want := make([]byte, limit)
	n := 0
	for _, size := range []int{0, 1, 2, 3, 4, 31, 63, 64, 65, limit / 2, limit - 1, limit} {
		if size < 0 || size > limit {
			continue
		}
		for _, wr := range []rdma.SendWR{send(n, src.sge(0, size)), write(n, dst.at(0), src.sge(0, size))} {
			src.fill(uint64(n))
			copy(want, src.data())
			fillByte(dst.data(), 0x33)
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
			e.equal(fmt.Sprintf("%s: inline %s of %d bytes", dst.name, wr.Op, size), dst.data()[:size], want[:size])
			e.allBytes(dst.name+": bytes behind", dst.data()[size:], 0x33)
		}
		n++
	}
	return nil
}

func inlKeyUnchecked(_ context.Context, e *Env) error {
	size := min(8, e.inlineLimit())
	c := e.connect(connOpts{inline: size})
	mem := e.memory("unregistered", 64)
	pattern(mem.buf.Bytes(), 7)
	mem.lo, mem.n = 0, 64
	dst := e.region(c.b, "dst", 64, remoteAll)
	c.b.postRecv(recv(1, dst.all()))
	c.a.post(inline(send(1, rdma.SGE{Addr: mem.buf.Addr() + 3, Len: uint32(size), LKey: 0xdeadbeef})))
	c.a.s.expect(ok(1))
	c.b.r.expect(got(1, size))
	e.equal(dst.name, dst.data()[:size], mem.buf.Bytes()[3:3+size])
	return nil
}

func inlOverMax(_ context.Context, e *Env) error {
	limit := e.Caps.MaxInline
	c := e.connect(connOpts{inline: limit})
	src := e.region(c.a, "src", limit+1, localOnly)
	if n, err := c.a.tryPost(inline(send(1, src.all()))); n != 0 || err == nil {
		e.failf(fmt.Sprintf("%d inline bytes refused at once", limit+1), "taken")
	}
	c.a.state(rdma.QPRTS)
	c.works()
	return nil
}

func inlGather(_ context.Context, e *Env) error {
	limit := min(e.inlineLimit(), 600)
	c := e.connect(connOpts{inline: limit})
	src := e.region(c.a, "src", 1024, localOnly)
	dst := e.region(c.b, "dst", 1024, localOnly)
	src.fill(1)
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
	return nil
}

func inlReadRefused(_ context.Context, e *Env) error {
	c := e.connect(connOpts{inline: 8})
	sink := e.region(c.a, "sink", 8, e.sinkAccess())
	src := e.region(c.b, "src", 8, remoteAll)
	src.fill(1)
	sink.freeze()
	if c.a.localFault(inline(read(1, src.at(0), sink.all())), rdma.StatusLocQPOpErr) {
		c.works()
	}
	sink.unchanged("by a refused read")
	return nil
}

// IMM: send with immediate.
var immCases = []Case{
	{ID: "imm/value", Clause: "IBTA 9.4.1?; man ibv_poll_cq (IBV_WC_WITH_IMM)", Needs: needSendImm,
		Requirement: "The 32 bits of immediate arrive as they were posted, and the completion says that they are there.",
		Run:         immValue},
	{ID: "imm/zero-length", Clause: "IBTA 9.4.1?", Needs: needSendImm,
		Requirement: "A message of 0 bytes carries its immediate.",
		Run:         immZeroLength},
	{ID: "imm/flag-clear", Clause: "man ibv_poll_cq", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpSendImm)},
		Requirement: "The flag is present exactly on messages that carry an immediate: the value 0 is a value.",
		Run:         immFlagClear},
}

func immValue(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 100, localOnly)
	dst := e.region(c.b, "dst", 100, localOnly)
	for i, v := range []uint32{0x01020304, 0, 1, 0x80000000, 0xffffffff} {
		src.fill(uint64(i))
		c.b.postRecv(recv(i, dst.all()))
		c.a.post(sendImm(i, v, src.all()))
		c.a.s.expect(ok(i))
		c.b.r.expect(got(i, 100).withImm(v))
		e.equal(dst.name, dst.data(), src.data())
	}
	return nil
}

func immZeroLength(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	c.b.postRecv(recv(1))
	c.a.post(sendImm(1, 0xcafe0001))
	c.a.s.expect(ok(1))
	c.b.r.expect(got(1, 0).withImm(0xcafe0001))
	return nil
}

func immFlagClear(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	for i := range 8 {
		c.b.postRecv(recv(i))
		if i%2 == 0 {
			c.a.post(sendImm(i, 0))
			c.b.r.expect(got(i, 0).withImm(0))
		} else {
			c.a.post(send(i))
			c.b.r.expect(got(i, 0)) // requires every flag to be clear
		}
		c.a.s.expect(ok(i))
	}
	return nil
}

// WIM: write with immediate.
var wimCases = []Case{
	{ID: "wim/delivers", Clause: "IBTA 9.4.3?; man ibv_poll_cq (IBV_WC_RECV_RDMA_WITH_IMM)", Needs: needWriteImm,
		Requirement: "The bytes are at the target when the receive completes with the immediate and the written length; the receive's own buffer is untouched.",
		Run:         wimDelivers},
	{ID: "wim/zero-any-key", Clause: "IBTA C9-88", Needs: needWriteImm,
		Requirement: "A write with immediate of 0 bytes is delivered whatever its key and address.",
		Run:         wimZeroAnyKey},
	{ID: "wim/bad-key", Clause: "IBTA C9-222.1.1", Needs: needWriteImm,
		Requirement: "A write with immediate under a wrong key is refused, writes nothing and delivers no immediate.",
		Run:         wimBadKey},
	{ID: "wim/no-receive", Clause: "IBTA 9.7.5.2.8?", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWriteImm), Features: rdma.FeatRNRRetry},
		Requirement: "A write with immediate that finds no receive ends with RNR_RETRY_EXC_ERR when no retry is allowed.",
		Run:         wimNoReceive},
}

func wimDelivers(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	own := e.region(c.b, "receive", 64, localOnly)
	own.fill(99)
	own.freeze()
	for i, size := range []int{1, 64, 5000, 70000} {
		src := e.region(c.a, fmt.Sprintf("src%d", size), size, localOnly)
		dst := e.region(c.b, fmt.Sprintf("dst%d", size), size+2, remoteAll)
		src.fill(uint64(i))
		fillByte(dst.data(), 0x33)
		c.b.postRecv(recv(i, own.all()))
		c.a.post(writeImm(i, uint32(i), dst.at(1), src.all()))
		c.a.s.expect(ok(i))
		c.b.r.expect(got(i, size).byWrite().withImm(uint32(i)))
		e.equal(dst.name, dst.data()[1:1+size], src.data())
		e.allBytes(dst.name+": bytes around", []byte{dst.data()[0], dst.data()[size+1]}, 0x33)
	}
	own.unchanged("by writes with immediate")
	return nil
}

func wimZeroAnyKey(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	dst := e.region(c.b, "dst", 64, remoteAll)
	dst.freeze()
	for i, t := range []target{dst.at(0), {}, {0, 0xdeadbeef}, {^uint64(0), dst.mr.RKey()}} {
		c.b.postRecv(recv(i))
		c.a.post(writeImm(i, uint32(100+i), t))
		c.a.s.expect(ok(i))
		c.b.r.expect(got(i, 0).byWrite().withImm(uint32(100 + i)))
	}
	dst.unchanged("by writes of 0 bytes")
	return nil
}

func wimBadKey(_ context.Context, e *Env) error {
	c := e.connect(connOpts{})
	src := e.region(c.a, "src", 64, localOnly)
	dst := e.region(c.b, "dst", 64, remoteAll)
	src.fill(1)
	dst.freeze()
	t := dst.at(0)
	t.key ^= 0x5a5a5a5a
	c.b.postRecv(recv(1))
	c.refusal(c.a, accessRefused(0x1100), writeImm(1, 7, t, src.all()))
	c.b.r.expect(recvFails(1, rdma.StatusWRFlushErr, rdma.StatusLocAccessErr, rdma.StatusLocProtErr, rdma.StatusRemAccessErr))
	c.dead()
	dst.unchanged("by a refused write")
	return nil
}

func wimNoReceive(_ context.Context, e *Env) error {
	p := e.param()
	p.RNRRetry = 0
	c := e.connect(connOpts{param: &p, accept: &p})
	src := e.region(c.a, "src", 8, localOnly)
	dst := e.region(c.b, "dst", 8, remoteAll)
	src.fill(1)
	dst.freeze()
	c.a.post(writeImm(1, 7, dst.at(0), src.all()))
	c.a.s.expect(sendFails(1, rdma.StatusRNRRetryExcErr))
	c.a.waitState(rdma.QPErr)
	c.a.flushesLater()
	// The specification lets the data be placed or not.
	e.Note("data placed: %v", string(dst.data()) != string(dst.frozen))
	return nil
}
