package rdma

// Opcode is the operation of a send work request (ibv_post_send(3)).
type Opcode uint8

const (
	// OpSend delivers the gathered bytes into the peer's next receive.
	OpSend Opcode = iota
	// OpSendInv is OpSend that also invalidates SendWR.InvKey at the peer (IBTA 9.4.1.1, RFC 5040 §4.3 opcode 4).
	OpSendInv
	// OpSendImm is OpSend that carries SendWR.Imm to the peer's completion; without
	// FeatImmPayload it carries nothing else.
	OpSendImm
	// OpWrite places the gathered bytes at RemoteAddr under RKey, unseen by the peer's application.
	OpWrite
	// OpWriteImm is OpWrite that also consumes a receive and carries SendWR.Imm.
	OpWriteImm
	// OpRead fetches bytes at RemoteAddr under RKey into the scatter list.
	OpRead
	// OpFetchAdd adds CompareAdd to the 8 bytes at RemoteAddr and returns the old value into the 8-byte sink.
	OpFetchAdd
	// OpCmpSwap stores Swap at RemoteAddr if it holds CompareAdd, and returns the old value into the 8-byte sink.
	OpCmpSwap
	// OpLocalInv revokes the local registration InvKey. It moves no bytes.
	OpLocalInv
	numOpcodes
)

// NumOpcodes is the number of send opcodes; every value below it is valid.
const NumOpcodes = int(numOpcodes)

var opcodeNames = [numOpcodes]string{"send", "send_inv", "send_imm", "write", "write_imm", "read", "fetch_add",
	"cmp_swap", "local_inv"}

// String is the lower-case name used on the command line and in results.
func (o Opcode) String() string { return nameIn(opcodeNames[:], o, "opcode?") }

// IsAtomic tells fetch-add and compare-swap.
func (o Opcode) IsAtomic() bool { return o == OpFetchAdd || o == OpCmpSwap }

// Responds tells operations that wait for an answer from the peer and count against ORD: read and the atomics.
func (o Opcode) Responds() bool { return o == OpRead || o.IsAtomic() }

// SendFlags modify one send work request.
type SendFlags uint8

const (
	// Signaled asks for a completion on success. Errors always complete (IBTA 10.7.3.1).
	Signaled SendFlags = 1 << iota
	// Fence holds the request until all earlier reads and atomics of the QP are done (IBTA 10.8.3.3).
	Fence
	// Solicited raises the peer's solicited event (RFC 5040 Send with SE).
	Solicited
	// Inline copies the gathered bytes during the post; the LKey is not checked and
	// the buffers are the caller's on return. Send and write only (ibv_post_send(3)).
	Inline
)

// MaxSGE is the most scatter/gather elements a work request can carry here.
const MaxSGE = 4

// SGE names Len bytes of local memory at Addr inside the registration LKey.
type SGE struct {
	Addr uint64
	Len  uint32
	LKey uint32
}

// SendWR is one send work request. It holds no pointer: it can be copied,
// kept in rings that the collector never scans, and handed to C.
type SendWR struct {
	ID         uint64 // the caller's; comes back in WC.ID
	RemoteAddr uint64 // write, read, atomics: address in the peer's registration
	CompareAdd uint64 // fetch_add: addend; cmp_swap: expected value (host order)
	Swap       uint64 // cmp_swap: new value (host order)
	RKey       uint32 // write, read, atomics: the peer's key
	InvKey     uint32 // send_inv: the peer's key to revoke; local_inv: our own
	Imm        uint32 // send_imm, write_imm: delivered as the same 32-bit number
	Op         Opcode
	Flags      SendFlags
	NumSGE     uint8
	Priority   uint8 // 0 is the least urgent; providers ignore it, tiers may schedule by it
	SGE        [MaxSGE]SGE
}

// Len is the number of payload bytes that the request gathers or scatters.
func (w *SendWR) Len() uint64 { return sgeLen(&w.SGE, w.NumSGE) }

// RecvWR is one receive work request: where the next inbound message goes.
type RecvWR struct {
	ID     uint64
	NumSGE uint8
	SGE    [MaxSGE]SGE
}

// Len is the capacity of the receive in bytes.
func (w *RecvWR) Len() uint64 { return sgeLen(&w.SGE, w.NumSGE) }

func sgeLen(s *[MaxSGE]SGE, n uint8) uint64 {
	var sum uint64
	for i := 0; i < int(n) && i < MaxSGE; i++ {
		sum += uint64(s[i].Len)
	}
	return sum
}

func nameIn[T ~uint8](names []string, v T, unknown string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return unknown
}
