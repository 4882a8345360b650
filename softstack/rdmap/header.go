package rdmap

import "encoding/binary"

// Lengths of the RDMAP headers and fixed payloads, in octets, behind the DDP
// header.
const (
	ReadRequestLen    = 28 // RFC 5040 §4.4
	ImmediateLen      = 8  // RFC 7306 §6.2
	AtomicRequestLen  = 52 // RFC 7306 §5.2.1
	AtomicResponseLen = 12 // RFC 7306 §5.2.2
)

// ReadRequest is the RDMA Read Request header (RFC 5040 §4.4): copy Size octets
// from the source, at the receiver of the request, to the sink, at its sender.
//
//	octets 0-3    sink STag
//	octets 4-11   sink TO
//	octets 12-15  message size
//	octets 16-19  source STag
//	octets 20-27  source TO
type ReadRequest struct {
	SinkSTag uint32
	SinkTO   uint64
	Size     uint32 // octets
	SrcSTag  uint32
	SrcTO    uint64
}

// PutReadRequest writes r to b[:ReadRequestLen]. It panics when b is shorter.
func PutReadRequest(b []byte, r *ReadRequest) {
	_ = b[ReadRequestLen-1]
	binary.BigEndian.PutUint32(b[0:], r.SinkSTag)
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], r.SrcSTag)
	binary.BigEndian.PutUint64(b[20:], r.SrcTO)
}

// GetReadRequest reads b[:ReadRequestLen]. The caller has checked the length.
func GetReadRequest(b []byte) ReadRequest {
	_ = b[ReadRequestLen-1]
	return ReadRequest{
		SinkSTag: binary.BigEndian.Uint32(b[0:]),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Size:     binary.BigEndian.Uint32(b[12:]),
		SrcSTag:  binary.BigEndian.Uint32(b[16:]),
		SrcTO:    binary.BigEndian.Uint64(b[20:]),
	}
}

// AtomicOp is the operation of an Atomic Request (RFC 7306 §5.1). Other values
// are not assigned and their request is refused.
type AtomicOp uint8

// The atomic operations.
const (
	AtomicFetchAdd AtomicOp = 0
	AtomicCmpSwap  AtomicOp = 2
)

// AtomicRequest is the Atomic Request header (RFC 7306 §5.2.1).
//
//	octets 0-3    reserved (28 bits) and operation (4 bits)
//	octets 4-7    request identifier
//	octets 8-11   remote STag
//	octets 12-19  remote TO, 8-octet aligned
//	octets 20-27  add or swap data
//	octets 28-35  add or swap mask
//	octets 36-43  compare data
//	octets 44-51  compare mask
type AtomicRequest struct {
	Op          AtomicOp
	ID          uint32
	STag        uint32
	TO          uint64
	Data        uint64
	Mask        uint64
	Compare     uint64
	CompareMask uint64
}

// PutAtomicRequest writes r to b[:AtomicRequestLen]. It panics when b is
// shorter.
func PutAtomicRequest(b []byte, r *AtomicRequest) {
	_ = b[AtomicRequestLen-1]
	binary.BigEndian.PutUint32(b[0:], uint32(r.Op)&0x0f)
	binary.BigEndian.PutUint32(b[4:], r.ID)
	binary.BigEndian.PutUint32(b[8:], r.STag)
	binary.BigEndian.PutUint64(b[12:], r.TO)
	binary.BigEndian.PutUint64(b[20:], r.Data)
	binary.BigEndian.PutUint64(b[28:], r.Mask)
	binary.BigEndian.PutUint64(b[36:], r.Compare)
	binary.BigEndian.PutUint64(b[44:], r.CompareMask)
}

// GetAtomicRequest reads b[:AtomicRequestLen]. The caller has checked the
// length, and checks the operation.
func GetAtomicRequest(b []byte) AtomicRequest {
	_ = b[AtomicRequestLen-1]
	return AtomicRequest{
		Op:          AtomicOp(b[3] & 0x0f),
		ID:          binary.BigEndian.Uint32(b[4:]),
		STag:        binary.BigEndian.Uint32(b[8:]),
		TO:          binary.BigEndian.Uint64(b[12:]),
		Data:        binary.BigEndian.Uint64(b[20:]),
		Mask:        binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}
}

// AtomicResponse is the Atomic Response header (RFC 7306 §5.2.2).
//
//	octets 0-3   identifier of the request
//	octets 4-11  value before the operation
type AtomicResponse struct {
	ID       uint32
	Original uint64
}

// PutAtomicResponse writes r to b[:AtomicResponseLen]. It panics when b is
// shorter.
func PutAtomicResponse(b []byte, r *AtomicResponse) {
	_ = b[AtomicResponseLen-1]
	binary.BigEndian.PutUint32(b[0:], r.ID)
	binary.BigEndian.PutUint64(b[4:], r.Original)
}

// GetAtomicResponse reads b[:AtomicResponseLen]. The caller has checked the
// length.
func GetAtomicResponse(b []byte) AtomicResponse {
	_ = b[AtomicResponseLen-1]
	return AtomicResponse{
		ID:       binary.BigEndian.Uint32(b[0:]),
		Original: binary.BigEndian.Uint64(b[4:]),
	}
}

// PutImmediate writes the eight octets of Immediate Data to b (RFC 7306 §6.2).
func PutImmediate(b []byte, v uint64) { binary.BigEndian.PutUint64(b, v) }

// GetImmediate reads the eight octets of Immediate Data from b.
func GetImmediate(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
