package rdmap

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
)

// Opcode is the RDMAP operation of a DDP segment (RFC 5040 §4.1 Fig. 4, RFC 7306 §4.1 Fig. 2).
type Opcode uint8

// The opcodes. 0xC to 0xF are not assigned.
const (
	OpWrite       Opcode = 0x0 // RDMA Write, tagged
	OpReadReq     Opcode = 0x1 // RDMA Read Request, queue 1
	OpReadResp    Opcode = 0x2 // RDMA Read Response, tagged
	OpSend        Opcode = 0x3 // Send, queue 0
	OpSendInv     Opcode = 0x4 // Send with Invalidate, queue 0
	OpSendSE      Opcode = 0x5 // Send with Solicited Event, queue 0
	OpSendSEInv   Opcode = 0x6 // Send with Solicited Event and Invalidate, queue 0
	OpTerminate   Opcode = 0x7 // Terminate, queue 2
	OpImmediate   Opcode = 0x8 // Immediate Data, queue 0
	OpImmediateSE Opcode = 0x9 // Immediate Data with Solicited Event, queue 0
	OpAtomicReq   Opcode = 0xA // Atomic Request, queue 1
	OpAtomicResp  Opcode = 0xB // Atomic Response, queue 3
)

var opcodeNames = [16]string{
	"RDMA Write", "RDMA Read Request", "RDMA Read Response",
	"Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate",
	"Terminate", "Immediate", "Immediate with SE", "Atomic Request", "Atomic Response",
}

// String gives the name RFC 5040 uses.
func (op Opcode) String() string {
	if int(op) < len(opcodeNames) && opcodeNames[op] != "" {
		return opcodeNames[op]
	}
	return fmt.Sprintf("opcode 0x%X", uint8(op))
}

// Solicited reports whether the operation asks for a solicited event.
func (op Opcode) Solicited() bool {
	return op == OpSendSE || op == OpSendSEInv || op == OpImmediateSE
}

// Invalidates reports whether the Invalidate STag field is meaningful.
func (op Opcode) Invalidates() bool { return op == OpSendInv || op == OpSendSEInv }

// The control octet, the first octet that DDP reserves for its ULP.
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	|  RV   |  Rsv  |    Opcode     |
//	+---+---+---+---+---+---+---+---+
const (
	controlRV     = 0x40 // RV 01, the IETF version
	controlBadRV  = 0x80 // set in RV 10 and 11 only
	maskControlOp = 0x0f
)

// Control is the control octet of op: version 1, reserved bits zero.
func Control(op Opcode) byte { return controlRV | byte(op)&maskControlOp }

// ParseControl splits a control octet. RV 01, and RV 00 of the RDMA Consortium, are valid (RFC 5040 §4.1).
func ParseControl(b byte) (op Opcode, versionOK bool) {
	return Opcode(b & maskControlOp), b&controlBadRV == 0
}

// opRule is the row of one opcode in RFC 5040 §4.1 Fig. 4 or RFC 7306 §4.1 Fig. 2.
type opRule struct {
	assigned bool
	tagged   bool
	qn       uint32 // when not tagged
	rfc7306  bool   // assigned by RFC 7306, unknown to a plain RFC 5040 stream
}

var opRules = [16]opRule{
	OpWrite:       {assigned: true, tagged: true},
	OpReadReq:     {assigned: true, qn: ddp.QNReadReq},
	OpReadResp:    {assigned: true, tagged: true},
	OpSend:        {assigned: true, qn: ddp.QNSend},
	OpSendInv:     {assigned: true, qn: ddp.QNSend},
	OpSendSE:      {assigned: true, qn: ddp.QNSend},
	OpSendSEInv:   {assigned: true, qn: ddp.QNSend},
	OpTerminate:   {assigned: true, qn: ddp.QNTerminate},
	OpImmediate:   {assigned: true, qn: ddp.QNSend, rfc7306: true},
	OpImmediateSE: {assigned: true, qn: ddp.QNSend, rfc7306: true},
	OpAtomicReq:   {assigned: true, qn: ddp.QNReadReq, rfc7306: true},
	OpAtomicResp:  {assigned: true, qn: ddp.QNAtomicResp, rfc7306: true},
}

// CheckInbound tests that opcode, T bit and queue, which a tagged segment lacks, belong together; 0: they do. rfc7306
// says whether atomics and immediate data are taken. An unknown queue is DDP's error and found first.
func CheckInbound(op Opcode, tagged bool, qn uint32, rfc7306 bool) TermCode {
	if !tagged && (qn > ddp.QNAtomicResp || qn == ddp.QNAtomicResp && !rfc7306) {
		return TermUntaggedQN
	}
	r := opRules[op&maskControlOp]
	if !r.assigned || r.rfc7306 && !rfc7306 || r.tagged != tagged || !tagged && r.qn != qn {
		return TermOpcode
	}
	return 0
}
