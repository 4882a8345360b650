package wiretest

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

// Segment is one FPDU to send: a right one from a constructor, then bent by the
// methods, each of which changes one thing and returns the Segment.
type Segment struct {
	ulpdu []byte
	pad   []byte                       // nil for the right one
	sum   func(covered []byte) [4]byte // nil for the right one
	mark  func(ptr uint16) [4]byte     // nil for the right one
	cut   int                          // octets that are sent, or -1 for all
}

// Raw is an FPDU around any ULPDU.
func Raw(ulpdu ...byte) *Segment { return &Segment{ulpdu: append([]byte(nil), ulpdu...), cut: -1} }

// Tagged is a last tagged segment.
func Tagged(op rdmap.Opcode, stag uint32, to uint64, payload []byte) *Segment {
	s := Raw(make([]byte, ddp.TaggedLen)...)
	ddp.PutTagged(s.ulpdu, &ddp.Tagged{Last: true, ULP: rdmap.Control(op), STag: stag, TO: to})
	return s.Append(payload...)
}

// Untagged is a last untagged segment at message offset 0.
func Untagged(op rdmap.Opcode, qn, msn uint32, payload []byte) *Segment {
	s := Raw(make([]byte, ddp.UntaggedLen)...)
	ddp.PutUntagged(s.ulpdu, &ddp.Untagged{Last: true, ULP: rdmap.Control(op), QN: qn, MSN: msn})
	return s.Append(payload...)
}

// Write is a whole RDMA Write.
func Write(stag uint32, to uint64, payload []byte) *Segment {
	return Tagged(rdmap.OpWrite, stag, to, payload)
}

// ReadResponse is a whole RDMA Read Response.
func ReadResponse(stag uint32, to uint64, payload []byte) *Segment {
	return Tagged(rdmap.OpReadResp, stag, to, payload)
}

// Send is a whole Send.
func Send(msn uint32, payload []byte) *Segment {
	return Untagged(rdmap.OpSend, ddp.QNSend, msn, payload)
}

// ReadRequest is an RDMA Read Request.
func ReadRequest(msn uint32, r rdmap.ReadRequest) *Segment {
	b := make([]byte, rdmap.ReadRequestLen)
	rdmap.PutReadRequest(b, &r)
	return Untagged(rdmap.OpReadReq, ddp.QNReadReq, msn, b)
}

// AtomicRequest is an Atomic Request (RFC 7306 §5.2.1).
func AtomicRequest(msn uint32, r rdmap.AtomicRequest) *Segment {
	b := make([]byte, rdmap.AtomicRequestLen)
	rdmap.PutAtomicRequest(b, &r)
	return Untagged(rdmap.OpAtomicReq, ddp.QNReadReq, msn, b)
}

// AtomicResponse is an Atomic Response (RFC 7306 §5.2.2).
func AtomicResponse(msn, id uint32, original uint64) *Segment {
	b := make([]byte, rdmap.AtomicResponseLen)
	rdmap.PutAtomicResponse(b, &rdmap.AtomicResponse{ID: id, Original: original})
	return Untagged(rdmap.OpAtomicResp, ddp.QNAtomicResp, msn, b)
}

// Immediate is an Immediate Data (RFC 7306 §6.2).
func Immediate(msn uint32, v uint64) *Segment {
	b := make([]byte, rdmap.ImmediateLen)
	rdmap.PutImmediate(b, v)
	return Untagged(rdmap.OpImmediate, ddp.QNSend, msn, b)
}

// Terminate is a Terminate with any payload.
func Terminate(payload ...byte) *Segment {
	return Untagged(rdmap.OpTerminate, ddp.QNTerminate, 1, payload)
}

// TerminateCode is a Terminate without headers.
func TerminateCode(code rdmap.TermCode) *Segment {
	t := rdmap.NewTerminate(code, 0, nil, nil)
	return Terminate(rdmap.AppendTerminate(nil, &t)...)
}

// ULPDU is header and payload as they are now.
func (s *Segment) ULPDU() []byte { return s.ulpdu }

// Append adds octets to the ULPDU.
func (s *Segment) Append(b ...byte) *Segment {
	s.ulpdu = append(s.ulpdu, b...)
	return s
}

// Shorten leaves the first n octets of the ULPDU.
func (s *Segment) Shorten(n int) *Segment {
	s.ulpdu = s.ulpdu[:n]
	return s
}

// Flip inverts bits of one octet of the ULPDU.
func (s *Segment) Flip(off int, bits byte) *Segment { return s.set(off, bits, ^s.ulpdu[off]) }

// More clears L: another segment of the message follows.
func (s *Segment) More() *Segment { return s.set(0, 0x40, 0) }

// DV sets the DDP version.
func (s *Segment) DV(v byte) *Segment { return s.set(0, 0x03, v) }

// RV sets the RDMAP version.
func (s *Segment) RV(v byte) *Segment { return s.set(1, 0xc0, v<<6) }

// Op sets the opcode and leaves the rest of the header.
func (s *Segment) Op(op rdmap.Opcode) *Segment { return s.set(1, 0x0f, byte(op)) }

// Inv sets the Invalidate STag of an untagged header.
func (s *Segment) Inv(v uint32) *Segment { return s.put32(2, v) }

// QN sets the queue number.
func (s *Segment) QN(v uint32) *Segment { return s.put32(6, v) }

// MSN sets the message sequence number.
func (s *Segment) MSN(v uint32) *Segment { return s.put32(10, v) }

// MO sets the message offset.
func (s *Segment) MO(v uint32) *Segment { return s.put32(14, v) }

func (s *Segment) set(off int, mask, bits byte) *Segment {
	s.ulpdu[off] = s.ulpdu[off]&^mask | bits&mask
	return s
}

func (s *Segment) put32(off int, v uint32) *Segment {
	binary.BigEndian.PutUint32(s.ulpdu[off:], v)
	return s
}

// Pad sets the octets between ULPDU and CRC, of any number.
func (s *Segment) Pad(b ...byte) *Segment {
	s.pad = append([]byte{}, b...)
	return s
}

// CRC computes the CRC field from the octets it covers.
func (s *Segment) CRC(f func(covered []byte) [4]byte) *Segment {
	s.sum = f
	return s
}

// BadCRC inverts the CRC.
func (s *Segment) BadCRC() *Segment {
	return s.CRC(func(b []byte) [4]byte {
		var out [4]byte
		mpa.PutCRC(out[:], ^mpa.CRC(0, b))
		return out
	})
}

// Mark computes the octets of every marker in this FPDU, or right before it, from the FPDUPTR it should carry.
func (s *Segment) Mark(f func(ptr uint16) [4]byte) *Segment {
	s.mark = f
	return s
}

// Cut sends only the first n octets of the FPDU.
func (s *Segment) Cut(n int) *Segment {
	s.cut = n
	return s
}

// Encoder lays Segments into one direction of a stream. It counts octets from
// the first FPDU on, because markers have fixed places (RFC 5044 §4.3).
type Encoder struct {
	CRC     bool // else the field is zero
	Markers bool
	pos     int
}

// Append appends the FPDU of s to dst.
func (e *Encoder) Append(dst []byte, s *Segment) []byte {
	body := binary.BigEndian.AppendUint16(nil, uint16(len(s.ulpdu)))
	body = append(body, s.ulpdu...)
	if s.pad != nil {
		body = append(body, s.pad...)
	} else {
		body = append(body, make([]byte, -len(body)&3)...)
	}

	start := len(dst)
	fpdu := -1 // index of the length field
	put := func(b byte) {
		if e.Markers && e.pos%mpa.MarkerInterval == 0 {
			ptr := 0
			if fpdu >= 0 {
				ptr = len(dst) - fpdu
			}
			m := [4]byte{0, 0, byte(ptr >> 8), byte(ptr)}
			if s.mark != nil {
				m = s.mark(uint16(ptr))
			}
			dst = append(dst, m[:]...)
			e.pos += mpa.MarkerLen
		}
		if fpdu < 0 {
			fpdu = len(dst)
		}
		dst = append(dst, b)
		e.pos++
	}
	for _, b := range body {
		put(b)
	}
	// The CRC covers a marker right before it, which is laid with its first
	// octet: put that octet, then look at the octets before it.
	put(0)
	covered := dst[start : len(dst)-1]
	var sum [4]byte
	switch {
	case s.sum != nil:
		sum = s.sum(covered)
	case e.CRC:
		mpa.PutCRC(sum[:], mpa.CRC(0, covered))
	}
	dst[len(dst)-1] = sum[0]
	for _, b := range sum[1:] {
		put(b)
	}
	if s.cut >= 0 {
		dst = dst[:start+s.cut]
	}
	return dst
}

// The keys of the startup frames (RFC 5044 §7.1.1).
const (
	RequestKey = "MPA ID Req Frame"
	ReplyKey   = "MPA ID Rep Frame"
)

// Bits of the flags octet of a startup frame.
const (
	FlagM byte = 0x80
	FlagC byte = 0x40
	FlagR byte = 0x20
	FlagS byte = 0x10
)

// Startup is a Request or Reply, right or wrong.
type Startup struct {
	Key     string
	Flags   byte
	Rev     byte
	PDLen   int    // PD_Length, or -1 for the length of Private
	Private []byte // with the enhanced data, if any
}

// StartupOf is the frame as package mpa would send it.
func StartupOf(f *mpa.Frame) Startup {
	b := mpa.AppendFrame(nil, f)
	return Startup{Key: string(b[:16]), Flags: b[16], Rev: b[17], PDLen: -1, Private: b[mpa.FrameHeaderLen:]}
}

// EnhancedWords are the four octets of RFC 6581 §9; the A, B, C and D bits are part of the words.
func EnhancedWords(ird, ord uint16) []byte {
	return []byte{byte(ird >> 8), byte(ird), byte(ord >> 8), byte(ord)}
}

// Bytes is the frame on the wire.
func (s Startup) Bytes() []byte {
	n := len(s.Private)
	if s.PDLen >= 0 {
		n = s.PDLen
	}
	b := append([]byte(s.Key), s.Flags, s.Rev)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	return append(b, s.Private...)
}
