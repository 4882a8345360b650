package rdmap

import "encoding/binary"

// AtomicOp is the operation of an Atomic Request (RFC 7306 §5.1). Code 1, a Swap in drafts, is reserved (§10.1).
type AtomicOp uint8

// The atomic operations.
const (
	AtomicFetchAdd AtomicOp = 0
	AtomicCmpSwap  AtomicOp = 2
)

// Assigned reports whether the operation exists. Who supports one supports all (RFC 7306 §5.2.1).
func (op AtomicOp) Assigned() bool { return op == AtomicFetchAdd || op == AtomicCmpSwap }

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

// AtomicSize is what an atomic reads and writes, in octets, and its alignment.
const AtomicSize = 8

const allBits = ^uint64(0)

// FetchAdd adds data to the word: add mask 0 makes it one field, the compare mask is not used (RFC 7306 §5.2.1).
func FetchAdd(id, stag uint32, to, data uint64) AtomicRequest {
	return AtomicRequest{Op: AtomicFetchAdd, ID: id, STag: stag, TO: to, Data: data, CompareMask: allBits}
}

// CmpSwap is the request that stores data where the word is compare, all bits of both.
func CmpSwap(id, stag uint32, to, compare, data uint64) AtomicRequest {
	return AtomicRequest{Op: AtomicCmpSwap, ID: id, STag: stag, TO: to, Data: data, Mask: allBits, Compare: compare,
		CompareMask: allBits}
}

// Result is what the operation makes of a word that holds old. The operation has to be an assigned one.
func (r *AtomicRequest) Result(old uint64) uint64 {
	if r.Op == AtomicCmpSwap {
		// RFC 7306 §5.1.2: masked bits are compared, and masked bits are swapped.
		if (r.Compare^old)&r.CompareMask != 0 {
			return old
		}
		return old&^r.Mask | r.Data&r.Mask
	}
	// RFC 7306 §5.1.1: no carry leaves a mask bit, the top of a field: these bits are added without carry.
	return (old&^r.Mask + r.Data&^r.Mask) ^ (old^r.Data)&r.Mask
}

// PutAtomicRequest writes r to b[:AtomicRequestLen]. It panics when b is shorter.
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

// GetAtomicRequest reads b[:AtomicRequestLen]. The caller has checked the length, and checks the operation.
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

// PutAtomicResponse writes r to b[:AtomicResponseLen]. It panics when b is shorter.
func PutAtomicResponse(b []byte, r *AtomicResponse) {
	_ = b[AtomicResponseLen-1]
	binary.BigEndian.PutUint32(b[0:], r.ID)
	binary.BigEndian.PutUint64(b[4:], r.Original)
}

// GetAtomicResponse reads b[:AtomicResponseLen]. The caller has checked the length.
func GetAtomicResponse(b []byte) AtomicResponse {
	_ = b[AtomicResponseLen-1]
	return AtomicResponse{
		ID:       binary.BigEndian.Uint32(b[0:]),
		Original: binary.BigEndian.Uint64(b[4:]),
	}
}
