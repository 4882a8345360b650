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
