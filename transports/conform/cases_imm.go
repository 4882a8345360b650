package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

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
