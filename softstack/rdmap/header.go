package rdmap

import "encoding/binary"

// Lengths of the RDMAP headers and fixed payloads, in octets, behind the DDP header.
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
