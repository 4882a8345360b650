package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

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
