package rdma

// WCOpcode says which kind of work a completion ends (ibv_poll_cq(3)).
type WCOpcode uint8

const (
	WCSend WCOpcode = iota // any send
	WCWrite
	WCRead
	WCFetchAdd
	WCCmpSwap
	WCLocalInv
	WCRecv         // a message arrived in a receive
	WCRecvWriteImm // a write with immediate consumed a receive; its SGEs are untouched
)

var wcOpcodeNames = [...]string{"send", "write", "read", "fetch_add", "cmp_swap", "local_inv", "recv", "recv_write_imm"}

// String is the lower-case name.
func (o WCOpcode) String() string { return nameIn(wcOpcodeNames[:], o, "wc_opcode?") }

// IsRecv tells completions of receive work requests.
func (o WCOpcode) IsRecv() bool { return o >= WCRecv }

// Completes maps a send opcode to the opcode its completion carries.
func (o Opcode) Completes() WCOpcode {
	switch o {
	case OpWrite, OpWriteImm:
		return WCWrite
	case OpRead:
		return WCRead
	case OpFetchAdd:
		return WCFetchAdd
	case OpCmpSwap:
		return WCCmpSwap
	case OpLocalInv:
		return WCLocalInv
	default:
		return WCSend
	}
}

// WCFlags say which optional fields of a completion hold a value. Presence is a
// flag, never a non-zero value: Imm 0 and key 0 are legal data.
type WCFlags uint8

const (
	WithImm WCFlags = 1 << iota // Imm is valid
	WithInv                     // InvKey is valid: the peer revoked it (send with invalidate)
)

// WC is one work completion. When Status is not StatusSuccess only ID, Status,
// QPNum and VendorErr have meaning (ibv_poll_cq(3)).
type WC struct {
	ID        uint64
	ByteLen   uint32 // receives: bytes delivered; read and atomics: bytes fetched
	QPNum     uint32
	Imm       uint32
	InvKey    uint32
	VendorErr uint32 // provider detail; for iWARP the Terminate layer/etype/code as 0xLECC, if any
	Status    Status
	Opcode    WCOpcode
	Flags     WCFlags
}

// Status is the outcome of a work request, in the words of ibv_wc_status_str(3).
type Status uint8

const (
	StatusSuccess        Status = iota
	StatusLocLenErr             // message longer than the receive, or length not allowed locally
	StatusLocQPOpErr            // QP cannot do this operation
	StatusLocProtErr            // local key, bounds or access of an SGE
	StatusWRFlushErr            // QP left RTS before this request was worked on
	StatusBadRespErr            // the peer's answer makes no sense
	StatusLocAccessErr          // local access during a receive or write with immediate
	StatusRemInvReqErr          // peer: request invalid (length, alignment, operation)
	StatusRemAccessErr          // peer: key, bounds or access refused
	StatusRemOpErr              // peer could not complete the operation
	StatusRetryExcErr           // peer does not answer
	StatusRNRRetryExcErr        // peer has no receive posted
	StatusRemAbortErr           // peer ended the connection
	StatusFatalErr              // device or stream lost
	StatusGeneralErr            // none of the above
	numStatus
)

var statusText = [numStatus]struct{ name, cause string }{
	StatusSuccess: {"success", ""},
	StatusLocLenErr: {"local length error",
		"message longer than the posted receive, or a length the device refuses; compare both sides' sizes"},
	StatusLocQPOpErr: {"local QP operation error",
		"operation not possible on this QP; check its capabilities and state"},
	StatusLocProtErr: {"local protection error",
		"an SGE is outside its registration, or the registration lacks local write, or the key is stale"},
	StatusWRFlushErr: {"work request flushed",
		"the QP was in error or disconnecting; the first error before this one is the cause"},
	StatusBadRespErr:   {"bad response", "the peer answered with an unexpected message"},
	StatusLocAccessErr: {"local access error", "the receive or target registration does not allow this access"},
	StatusRemInvReqErr: {"remote invalid request",
		"the peer refused the request: length, alignment or unsupported operation"},
	StatusRemAccessErr: {"remote access error",
		"the peer's key, bounds or access rights do not allow it; check rkey, address range and registration flags"},
	StatusRemOpErr: {"remote operation error", "the peer could not complete the operation"},
	StatusRetryExcErr: {"transport retry counter exceeded",
		"the peer does not answer: path, GID, MTU, firewall, or the peer died"},
	StatusRNRRetryExcErr: {"RNR retry counter exceeded",
		"the peer had no receive posted; raise its receive depth or send fewer at once"},
	StatusRemAbortErr: {"remote aborted", "the peer ended the connection"},
	StatusFatalErr:    {"fatal error", "the device or the stream below is gone"},
	StatusGeneralErr:  {"general error", "see the vendor error"},
}

// String is the status in the field's words.
func (s Status) String() string {
	if s < numStatus {
		return statusText[s].name
	}
	return "status?"
}

// Cause is the likely reason and what to look at next; empty for success.
func (s Status) Cause() string {
	if s < numStatus {
		return statusText[s].cause
	}
	return ""
}
