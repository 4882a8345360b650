package mpa

import (
	"encoding/binary"
	"hash/crc32"
)

// Sizes of an FPDU, in octets.
const (
	MaxULPDU       = 65535 // what ULPDU_Length can say
	LenFieldLen    = 2     // ULPDU_Length
	CRCLen         = 4
	MarkerLen      = 4
	MarkerInterval = 512 // from one marker to the next, RFC 5044 §4.3
	MinMULPDU      = 128 // RFC 5044 §4.5
)

// maxMarkedEMSS keeps every marker's FPDUPTR, which has 16 bits, in range.
const maxMarkedEMSS = 65536

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var zeros [4]byte

// Pad is the zero octets before the CRC: length field, ULPDU and pad are a multiple of four (RFC 5044 §4.1).
func Pad(ulpdu int) int { return -(LenFieldLen + ulpdu) & 3 }

// FPDULen is the number of octets of the FPDU around a ULPDU of the given length, without markers.
func FPDULen(ulpdu int) int { return LenFieldLen + ulpdu + Pad(ulpdu) + CRCLen }

// MULPDU is the largest ULPDU whose FPDU, with markers, fits a segment of emss octets (RFC 5044 §4.5): from MinMULPDU
// to what ULPDU_Length, or with markers FPDUPTR, can say.
func MULPDU(emss int, markers bool) int {
	n := emss
	if markers {
		n = min(n, maxMarkedEMSS)
		n -= MarkerLen * ((n + MarkerInterval - 1) / MarkerInterval)
	}
	n -= LenFieldLen + CRCLen + emss&3
	return min(max(n, MinMULPDU), MaxULPDU)
}

// CRC continues the CRC32c of an FPDU with b; it starts from 0 (RFC 5044 §4.4).
func CRC(crc uint32, b []byte) uint32 { return updateCRC(crc, b) }

// PutCRC writes a CRC to b[:CRCLen] in little endian, unlike other fields (RFC 5044 §4.4, Fig. 5).
func PutCRC(b []byte, crc uint32) { binary.LittleEndian.PutUint32(b, crc) }

// GetCRC reads the CRC from b[:CRCLen].
func GetCRC(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// AppendFPDU appends the FPDU around ulpdu, without markers; without crc the field is zero. It allocates only where dst
// lacks FPDULen octets, and panics above MaxULPDU.
func AppendFPDU(dst, ulpdu []byte, crc bool) []byte {
	checkULPDU(ulpdu)
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(ulpdu)))
	dst = append(dst, ulpdu...)
	dst = append(dst, zeros[:Pad(len(ulpdu))]...)
	var sum uint32
	if crc {
		sum = CRC(0, dst[start:])
	}
	return binary.LittleEndian.AppendUint32(dst, sum)
}

func checkULPDU(ulpdu []byte) {
	if len(ulpdu) > MaxULPDU {
		panic("mpa: ulpdu longer than 65535 octets")
	}
}

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
