package mpa

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Deframer cuts a received stream into ULPDUs (RFC 5044 §6). It takes the stream in pieces of any size, removes
// markers, and gives a ULPDU only after its markers and its CRC are checked. It holds at most one FPDU.
//
//	for len(b) > 0 {
//		n := d.Feed(b)
//		b = b[n:]
//		ulpdu, ok, err := d.Next()
//		…
//	}
type Deframer struct {
	markers bool
	crc     bool

	buf  []byte // the FPDU so far, markers removed
	need int    // octets of buf that make the next step possible
	head bool   // need counts the whole FPDU, not only its length field

	pos    uint // octets since the last marker position, below MarkerInterval
	off    uint // octets of the stream since the FPDU's length field
	mark   [MarkerLen]byte
	nmark  int    // octets of mark that have arrived
	sum    uint32 // CRC of everything up to the CRC field
	begun  bool   // an octet of the FPDU, or of the marker before it, has arrived
	served bool   // Next has given the ULPDU in buf
	err    *Error
}

// NewDeframer is for one direction of a connection before its first FPDU; markers and crc were negotiated.
func NewDeframer(markers, crc bool) *Deframer {
	d := &Deframer{markers: markers, crc: crc}
	d.reset()
	return d
}

func (d *Deframer) reset() {
	*d = Deframer{markers: d.markers, crc: d.crc, buf: d.buf[:0], need: LenFieldLen, pos: d.pos}
}

// Partial reports whether the stream is inside an FPDU: a FIN that arrives here cuts a message off.
func (d *Deframer) Partial() bool { return d.begun && !d.complete() }

func (d *Deframer) complete() bool { return d.head && len(d.buf) == d.need }

// Feed takes octets of the stream and returns how many it took, which is never beyond the end of the current FPDU and
// is 0 while a complete one waits for Next. After an error it takes and drops everything.
func (d *Deframer) Feed(b []byte) (n int) {
	if d.err != nil {
		return len(b)
	}
	if d.complete() {
		if !d.served {
			return 0
		}
		d.reset()
	}
	d.begun = d.begun || len(b) > 0
	for n < len(b) && !d.complete() {
		if d.markers && (d.pos == 0 || d.nmark > 0) {
			n += d.feedMarker(b[n:])
			if d.err != nil {
				return len(b)
			}
			continue
		}
		n += d.feedData(b[n:])
	}
	return n
}

func (d *Deframer) feedMarker(b []byte) int {
	n := copy(d.mark[d.nmark:], b)
	d.nmark += n
	if d.nmark < MarkerLen {
		return n
	}
	d.nmark = 0
	d.pos = MarkerLen
	// RFC 5044 §4.2: the reserved octets are ignored and the two low bits of FPDUPTR count as zero.
	if ptr := binary.BigEndian.Uint16(d.mark[2:]) &^ 3; ptr != uint16(d.off) {
		d.err = &Error{CodeMarker, fmt.Sprintf("marker %d octets into the fpdu says %d", d.off, ptr)}
		return n
	}
	if d.crc {
		// RFC 5044 §4.4: every marker of the FPDU is covered, that right before it and that right before the CRC too.
		d.sum = CRC(d.sum, d.mark[:])
	}
	if len(d.buf) > 0 {
		d.off += MarkerLen
	}
	return n
}

func (d *Deframer) feedData(b []byte) int {
	n := min(len(b), d.need-len(d.buf))
	if d.markers {
		n = min(n, MarkerInterval-int(d.pos))
		d.pos = (d.pos + uint(n)) % MarkerInterval
	}
	d.off += uint(n)
	at := len(d.buf)
	d.buf = append(d.buf, b[:n]...)
	if d.crc {
		end := len(d.buf)
		if d.head {
			end = min(end, d.need-CRCLen)
		}
		if at < end {
			d.sum = CRC(d.sum, d.buf[at:end])
		}
	}
	if !d.head && len(d.buf) == LenFieldLen {
		d.head = true
		d.need = FPDULen(int(binary.BigEndian.Uint16(d.buf)))
		d.buf = slices.Grow(d.buf, d.need-LenFieldLen)
	}
	return n
}

// Next gives the ULPDU of a checked FPDU, the Deframer's until the next Feed; ok is false while octets are missing. err
// is an *Error with CodeCRC or CodeMarker, and stays (RFC 5044 §8).
func (d *Deframer) Next() (ulpdu []byte, ok bool, err error) {
	if d.err != nil {
		return nil, false, d.err
	}
	if !d.complete() || d.served {
		return nil, false, nil
	}
	if d.crc {
		if got := GetCRC(d.buf[d.need-CRCLen:]); got != d.sum {
			d.err = &Error{CodeCRC, fmt.Sprintf("received %08x, computed %08x", got, d.sum)}
			return nil, false, d.err
		}
	}
	d.served = true
	return d.buf[LenFieldLen : LenFieldLen+int(binary.BigEndian.Uint16(d.buf))], true, nil
}
