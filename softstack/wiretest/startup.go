package wiretest

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

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
