package mpa

import "encoding/binary"

// MarkerWriter frames ULPDUs with a marker at every multiple of MarkerInterval, from the first FPDU of one direction on
// (RFC 5044 §4.3). The zero value is ready.
type MarkerWriter struct {
	pos uint // octets since the last marker position, below MarkerInterval
}

// Append appends the FPDU around ulpdu with its markers and a CRC, or zeros without crc. It panics above MaxULPDU.
func (w *MarkerWriter) Append(dst, ulpdu []byte, crc bool) []byte {
	checkULPDU(ulpdu)
	start := len(dst)
	if w.pos == 0 {
		// The marker before an FPDU points nowhere: FPDUPTR is 0.
		dst = append(dst, 0, 0, 0, 0)
		w.pos = MarkerLen
	}
	fpdu := len(dst)
	var head [LenFieldLen]byte
	binary.BigEndian.PutUint16(head[:], uint16(len(ulpdu)))
	dst = w.put(dst, fpdu, head[:])
	dst = w.put(dst, fpdu, ulpdu)
	dst = w.put(dst, fpdu, zeros[:Pad(len(ulpdu))])
	dst = w.mark(dst, fpdu)
	var tail [CRCLen]byte
	if crc {
		// RFC 5044 §4.4: markers in the FPDU and right before it are covered.
		PutCRC(tail[:], CRC(0, dst[start:]))
	}
	return w.put(dst, fpdu, tail[:])
}

// put appends b, with a marker wherever the stream is at a marker position.
func (w *MarkerWriter) put(dst []byte, fpdu int, b []byte) []byte {
	for len(b) > 0 {
		dst = w.mark(dst, fpdu)
		n := min(MarkerInterval-int(w.pos), len(b))
		dst = append(dst, b[:n]...)
		w.pos = (w.pos + uint(n)) % MarkerInterval
		b = b[n:]
	}
	return dst
}

// mark appends a marker if the stream is at a marker position. fpdu is the index in dst of the FPDU's length field.
func (w *MarkerWriter) mark(dst []byte, fpdu int) []byte {
	if w.pos != 0 {
		return dst
	}
	w.pos = MarkerLen
	return append(dst, 0, 0, byte((len(dst)-fpdu)>>8), byte(len(dst)-fpdu))
}
