package rdmap

import (
	"encoding/binary"
	"errors"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
)

// Sizes of a Terminate payload, in octets.
const (
	terminateControlLen = 4
	terminateSegLenLen  = 2

	// MaxTerminateLen is the longest payload: control word, length, untagged header and Read Request header.
	MaxTerminateLen = terminateControlLen + terminateSegLenLen + ddp.UntaggedLen + ReadRequestLen
)

// Bits of the third octet of the control word (HdrCt).
const (
	flagM = 0x80
	flagD = 0x40
	flagR = 0x20

	siwFlagM = 0x01
	siwFlagD = 0x02
	siwFlagR = 0x04
)

// Terminate is the payload of a Terminate message (RFC 5040 §4.8), which
// follows an untagged DDP header with queue 2, MSN 1, MO 0.
//
//	octet 0     layer (4 bits) | error type (4 bits)
//	octet 1     error code
//	octets 2-3  M | D | R | reserved (13 bits)
//	then        DDP segment length (2 octets) when M or D
//	then        DDP header of the offending segment (14 or 18 octets) when D
//	then        RDMAP Read Request header (28 octets) when R
type Terminate struct {
	Code   TermCode
	M      bool   // SegLen is valid
	D      bool   // DDP is present
	R      bool   // RDMAP is present
	SegLen uint16 // ULPDU length of the offending segment, octets
	DDP    []byte // its DDP header, 14 or 18 octets
	RDMAP  []byte // its Read Request header, 28 octets
}

// Layout is the bit order a Terminate was read in.
type Layout uint8

// The layouts.
const (
	LayoutRFC Layout = iota // as RFC 5040 draws it
	LayoutSiw               // Linux siw on a little-endian host, see ParseTerminate
)

// NewTerminate builds the Terminate for code. segLen is the ULPDU length of the offending segment, ddpHeader its header
// and readReq its Read Request header, or nil. RFC 5040 §4.8 says which are carried. The slices are kept.
func NewTerminate(code TermCode, segLen int, ddpHeader, readReq []byte) Terminate {
	t := Terminate{Code: code}
	row, _ := code.info()
	if row.with == headersNone || len(ddpHeader) == 0 {
		return t
	}
	n := ddp.HeaderLen(ddpHeader[0])
	if len(ddpHeader) < n {
		return t
	}
	t.M, t.D = true, true
	t.SegLen = uint16(segLen)
	t.DDP = ddpHeader[:n]
	if row.with == headersRead && len(readReq) >= ReadRequestLen {
		t.R = true
		t.RDMAP = readReq[:ReadRequestLen]
	}
	return t
}

// AppendTerminate appends the payload of t, which follows the untagged header.
func AppendTerminate(dst []byte, t *Terminate) []byte {
	var hdrct byte
	if t.M {
		hdrct |= flagM
	}
	if t.D {
		hdrct |= flagD
	}
	if t.R {
		hdrct |= flagR
	}
	dst = append(dst, t.Code.Layer()<<4|t.Code.EType(), t.Code.Code(), hdrct, 0)
	if t.M || t.D {
		// RFC 5040 §4.8: the length is present with D and valid with M.
		dst = binary.BigEndian.AppendUint16(dst, t.SegLen)
	}
	if t.D {
		dst = append(dst, t.DDP...)
	}
	if t.R {
		dst = append(dst, t.RDMAP...)
	}
	return dst
}

var (
	errTermShort   = errors.New("parse terminate: shorter than its control word")
	errTermHeaders = errors.New("parse terminate: shorter than the headers it announces")
)

// ParseTerminate reads a Terminate payload, whose slices are parts of b. With an error the code is valid from four
// octets on. What follows the headers announced is no error.
//
// Linux siw on little-endian hosts swaps the nibbles of the first octet and puts M, D, R into the low bits of the
// third. Both layouts are accepted: flags decide, else an assigned reason, the RFC's first. Without headers siw's
// message is misread where the swapped reason is assigned: 0/2/05 to 0/2/07 for 2/0/05 to 2/0/07, and 0/1/00 for
// 1/0/00.
func ParseTerminate(b []byte) (Terminate, Layout, error) {
	if len(b) < terminateControlLen {
		return Terminate{}, LayoutRFC, errTermShort
	}
	layout := terminateLayout(b)
	t := Terminate{Code: NewTermCode(b[0]>>4, b[0], b[1])}
	m, d, r := byte(flagM), byte(flagD), byte(flagR)
	if layout == LayoutSiw {
		t.Code = NewTermCode(b[0], b[0]>>4, b[1])
		m, d, r = siwFlagM, siwFlagD, siwFlagR
	}
	hdrct := b[2]
	b = b[terminateControlLen:]
	if hdrct&(m|d) != 0 {
		if len(b) < terminateSegLenLen {
			return t, layout, errTermHeaders
		}
		t.M = hdrct&m != 0
		t.SegLen = binary.BigEndian.Uint16(b)
		b = b[terminateSegLenLen:]
	}
	if hdrct&d != 0 {
		if len(b) == 0 || len(b) < ddp.HeaderLen(b[0]) {
			return t, layout, errTermHeaders
		}
		n := ddp.HeaderLen(b[0])
		t.D = true
		t.DDP, b = b[:n:n], b[n:]
	}
	if hdrct&r != 0 {
		if len(b) < ReadRequestLen {
			return t, layout, errTermHeaders
		}
		t.R = true
		t.RDMAP = b[:ReadRequestLen:ReadRequestLen]
	}
	return t, layout, nil
}

func terminateLayout(b []byte) Layout {
	switch hdrct := b[2]; {
	case hdrct&(flagM|flagD|flagR) != 0:
		return LayoutRFC
	case hdrct&(siwFlagM|siwFlagD|siwFlagR) != 0:
		return LayoutSiw
	case NewTermCode(b[0]>>4, b[0], b[1]).Known():
		return LayoutRFC
	case NewTermCode(b[0], b[0]>>4, b[1]).Known():
		return LayoutSiw
	}
	return LayoutRFC
}
