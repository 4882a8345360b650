package ddp

import "encoding/binary"

// Sizes, version and queue numbers of a DDP segment.
const (
	TaggedLen   = 14 // octets of a tagged header, RFC 5041 §4.2
	UntaggedLen = 18 // octets of an untagged header, RFC 5041 §4.3
	Version     = 1  // the DV field, RFC 5041 §4.1

	QNSend       = 0 // Send family and Immediate, RFC 5040 §4.1
	QNReadReq    = 1 // RDMA Read Request and Atomic Request
	QNTerminate  = 2 // Terminate
	QNAtomicResp = 3 // Atomic Response, RFC 7306 §4.1
)

// Bits of the first octet, which both kinds of header share.
//
//	 0   1   2   3   4   5   6   7
//	+---+---+---+---+---+---+---+---+
//	| T | L |    Reserved   |  DV   |
//	+---+---+---+---+---+---+---+---+
const (
	flagTagged = 0x80
	flagLast   = 0x40
	maskDV     = 0x03
)

// Tagged is the header of a segment that names its place: a steering tag and an offset into that buffer.
//
//	octet 0      T=1 | L | reserved | DV
//	octet 1      reserved for the ULP
//	octets 2-5   STag
//	octets 6-13  TO
type Tagged struct {
	Last bool   // last segment of the message
	ULP  uint8  // the octet reserved for the ULP; RDMAP keeps its control there
	STag uint32 // steering tag
	TO   uint64 // tagged offset of the first payload octet
}

// Untagged is the header of a segment whose place the receiver chooses: a
// queue, a message on it and an offset in the message.
//
//	octet 0       T=0 | L | reserved | DV
//	octet 1       reserved for the ULP, first octet
//	octets 2-5    reserved for the ULP, remaining four octets
//	octets 6-9    QN
//	octets 10-13  MSN
//	octets 14-17  MO
type Untagged struct {
	Last    bool   // last segment of the message
	ULP     uint8  // first octet reserved for the ULP; RDMAP control
	InvSTag uint32 // the other four; RDMAP's Invalidate STag, else 0
	QN      uint32 // queue number
	MSN     uint32 // message sequence number, the first on a queue is 1
	MO      uint32 // offset of the first payload octet in the message
}

// IsTagged reports the T bit of a segment's first octet.
func IsTagged(b0 byte) bool { return b0&flagTagged != 0 }

// IsLast reports the L bit of a segment's first octet.
func IsLast(b0 byte) bool { return b0&flagLast != 0 }

// VersionOK reports whether the DV field is Version; else it is ErrTaggedVersion or ErrUntaggedVersion (RFC 5041 §7.2).
func VersionOK(b0 byte) bool { return b0&maskDV == Version }

// PutTagged writes h to b[:TaggedLen]. It panics when b is shorter.
func PutTagged(b []byte, h *Tagged) {
	_ = b[TaggedLen-1]
	b0 := byte(flagTagged | Version)
	if h.Last {
		b0 |= flagLast
	}
	b[0] = b0
	b[1] = h.ULP
	binary.BigEndian.PutUint32(b[2:], h.STag)
	binary.BigEndian.PutUint64(b[6:], h.TO)
}

// GetTagged reads b[:TaggedLen]. The caller has checked the length, the T bit and the version.
func GetTagged(b []byte) Tagged {
	_ = b[TaggedLen-1]
	return Tagged{
		Last: b[0]&flagLast != 0,
		ULP:  b[1],
		STag: binary.BigEndian.Uint32(b[2:]),
		TO:   binary.BigEndian.Uint64(b[6:]),
	}
}

// PutUntagged writes h to b[:UntaggedLen]. It panics when b is shorter.
func PutUntagged(b []byte, h *Untagged) {
	_ = b[UntaggedLen-1]
	b0 := byte(Version)
	if h.Last {
		b0 |= flagLast
	}
	b[0] = b0
	b[1] = h.ULP
	binary.BigEndian.PutUint32(b[2:], h.InvSTag)
	binary.BigEndian.PutUint32(b[6:], h.QN)
	binary.BigEndian.PutUint32(b[10:], h.MSN)
	binary.BigEndian.PutUint32(b[14:], h.MO)
}

// GetUntagged reads b[:UntaggedLen]. The caller has checked the length, the T bit and the version.
func GetUntagged(b []byte) Untagged {
	_ = b[UntaggedLen-1]
	return Untagged{
		Last:    b[0]&flagLast != 0,
		ULP:     b[1],
		InvSTag: binary.BigEndian.Uint32(b[2:]),
		QN:      binary.BigEndian.Uint32(b[6:]),
		MSN:     binary.BigEndian.Uint32(b[10:]),
		MO:      binary.BigEndian.Uint32(b[14:]),
	}
}

// HeaderLen is the length of the header that starts with the octet b0.
func HeaderLen(b0 byte) int {
	if b0&flagTagged != 0 {
		return TaggedLen
	}
	return UntaggedLen
}
