package rdmap

import "encoding/binary"

// Immediate is the use that verbs make of the eight octets of Immediate Data (RFC 7306 §6.2). The RFC gives them no
// structure; what stands here is what Chelsio's iw_cxgb4 makes of them (union iw_imm_data in t4.h), so that both
// understand each other:
//
//	octets 0-3  the 32 bits of a verbs immediate
//	octets 4-7  0; 1 in a message that belongs to no Write (ours alone)
//
// Behind an RDMA Write the two messages are one write with immediate (RFC 7306 §6). Verbs know a zero-length send with
// immediate as well, which may follow a Write that it has nothing to do with: hence the 1.
type Immediate struct {
	Value uint32
	Alone bool
}

const immediateAlone = 1

// PutImmediate writes the eight octets of Immediate Data to b (RFC 7306 §6.2).
func PutImmediate(b []byte, v uint64) { binary.BigEndian.PutUint64(b, v) }

// GetImmediate reads the eight octets of Immediate Data from b.
func GetImmediate(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

// Octets are the eight octets of v as PutImmediate writes them.
func (v Immediate) Octets() uint64 {
	o := uint64(v.Value) << 32
	if v.Alone {
		o |= immediateAlone
	}
	return o
}

// ImmediateOf reads eight octets as verbs do. What else a foreign peer put into octets 4 to 7 is not looked at.
func ImmediateOf(octets uint64) Immediate {
	return Immediate{uint32(octets >> 32), uint32(octets) == immediateAlone}
}
