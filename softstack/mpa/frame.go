package mpa

import "encoding/binary"

// Sizes of the startup frames, in octets.
const (
	FrameHeaderLen = 20  // Request or Reply without private data
	MaxPrivate     = 512 // private data, RFC 5044 §7.1.1

	keyLen      = 16
	enhancedLen = 4 // RFC 6581 §9, part of the private data
)

const (
	keyRequest = "MPA ID Req Frame"
	keyReply   = "MPA ID Rep Frame"
)

// Bits of octet 16 and of the enhanced data.
const (
	flagM = 0x80 // sender requires markers in what it receives
	flagC = 0x40 // sender requires CRC
	flagR = 0x20 // connection rejected
	flagS = 0x10 // enhanced data leads the private data, RFC 6581 §6

	enhA    = 0x8000 // peer-to-peer model, in the IRD word
	enhB    = 0x4000 // zero-length Send as RTR, in the IRD word
	enhC    = 0x8000 // zero-length RDMA Write as RTR, in the ORD word
	enhD    = 0x4000 // zero-length RDMA Read as RTR, in the ORD word
	enhMask = 0x3fff
)

// NoNegotiation as an IRD or ORD says that the upper layer settles the value itself (RFC 6581 §9.1).
const NoNegotiation = 0x3fff

// Frame is an MPA Request or Reply (RFC 5044 §7.1.1, RFC 6581 §6).
//
//	octets 0-15   key
//	octet 16      M | C | R | S | reserved (4 bits)
//	octet 17      revision
//	octets 18-19  PD_Length
//	octets 20-    private data; its first four octets are the enhanced data
//	              when S is set
type Frame struct {
	Reply    bool     // Reply key, else Request key
	Markers  bool     // M
	CRC      bool     // C
	Reject   bool     // R, meaningful in a Reply only
	Enhanced bool     // S
	Rev      uint8    // revision, 1 or 2
	Enh      Enhanced // when Enhanced
	Private  []byte   // the upper layer's private data, without the enhanced data
}

// Enhanced is the enhanced connection establishment data of RFC 6581 §9.
//
//	octets 0-1  A | B | IRD (14 bits)
//	octets 2-3  C | D | ORD (14 bits)
type Enhanced struct {
	PeerToPeer bool   // A: an RTR indication opens the stream
	RTRSend    bool   // B: a zero-length Send may be the RTR
	RTRWrite   bool   // C: a zero-length RDMA Write may be
	RTRRead    bool   // D: a zero-length RDMA Read may be
	IRD        uint16 // inbound RDMA Read queue depth, 14 bits
	ORD        uint16 // outbound RDMA Read queue depth, 14 bits
}

// AppendFrame appends the frame, right or wrong: NewRequest, NewReply and NewReject build right ones. Bits of IRD and
// ORD above the 14th are dropped.
func AppendFrame(dst []byte, f *Frame) []byte {
	key := keyRequest
	if f.Reply {
		key = keyReply
	}
	dst = append(dst, key...)
	pd := len(f.Private)
	if f.Enhanced {
		pd += enhancedLen
	}
	dst = append(dst, flag[byte](f.Markers, flagM)|flag[byte](f.CRC, flagC)|flag[byte](f.Reject, flagR)|
		flag[byte](f.Enhanced, flagS), f.Rev)
	dst = binary.BigEndian.AppendUint16(dst, uint16(pd))
	if f.Enhanced {
		dst = appendEnhanced(dst, &f.Enh)
	}
	return append(dst, f.Private...)
}

func appendEnhanced(dst []byte, e *Enhanced) []byte {
	dst = binary.BigEndian.AppendUint16(dst,
		e.IRD&enhMask|flag[uint16](e.PeerToPeer, enhA)|flag[uint16](e.RTRSend, enhB))
	return binary.BigEndian.AppendUint16(dst,
		e.ORD&enhMask|flag[uint16](e.RTRWrite, enhC)|flag[uint16](e.RTRRead, enhD))
}

func flag[T byte | uint16](on bool, bit T) T {
	if on {
		return bit
	}
	return 0
}

func parseEnhanced(b []byte) Enhanced {
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return Enhanced{
		PeerToPeer: ird&enhA != 0,
		RTRSend:    ird&enhB != 0,
		RTRWrite:   ord&enhC != 0,
		RTRRead:    ord&enhD != 0,
		IRD:        ird & enhMask,
		ORD:        ord & enhMask,
	}
}

// ParseFrameHeader checks the first FrameHeaderLen octets and says how many of private data follow, before an unknown
// peer asks for memory. The error is an *Error with CodeBadFrame.
func ParseFrameHeader(b []byte) (reply bool, pdLen int, err error) {
	if len(b) < FrameHeaderLen {
		return false, 0, badFrame("%d octets, want at least %d", len(b), FrameHeaderLen)
	}
	switch string(b[:keyLen]) {
	case keyRequest:
	case keyReply:
		reply = true
	default:
		// RFC 5044 §7.1.2 rules 2 and 3: close, no Terminate.
		return false, 0, badFrame("unknown key %x", b[:keyLen])
	}
	pdLen = int(binary.BigEndian.Uint16(b[18:]))
	if pdLen > MaxPrivate {
		// RFC 5044 §7.1.1: PD_Length must not be above 512.
		return reply, pdLen, badFrame("private data length %d, limit %d", pdLen, MaxPrivate)
	}
	return reply, pdLen, nil
}

// ParseFrame reads one whole frame, which b is; Private is a part of b. The error is an *Error with CodeBadFrame.
func ParseFrame(b []byte) (*Frame, error) {
	reply, pdLen, err := ParseFrameHeader(b)
	if err != nil {
		return nil, err
	}
	if len(b) != FrameHeaderLen+pdLen {
		// RFC 5044 §7.1.2 rule 9: the length must be validated.
		return nil, badFrame("private data of %d octets, header says %d", len(b)-FrameHeaderLen, pdLen)
	}
	flags := b[16]
	f := &Frame{
		Reply:    reply,
		Markers:  flags&flagM != 0,
		CRC:      flags&flagC != 0,
		Reject:   flags&flagR != 0,
		Enhanced: flags&flagS != 0,
		Rev:      b[17],
		Private:  b[FrameHeaderLen:],
	}
	if err := checkPeer(f); err != nil {
		return nil, err
	}
	if f.Enhanced {
		if pdLen < enhancedLen {
			return nil, badFrame("enhanced data in %d octets of private data", pdLen)
		}
		f.Enh = parseEnhanced(f.Private)
		f.Private = f.Private[enhancedLen:]
	}
	return f, nil
}
