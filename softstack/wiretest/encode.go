package wiretest

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
)

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
