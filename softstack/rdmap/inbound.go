package rdmap

import "github.com/rdmaperf/rdmaperf/softstack/ddp"

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
