package wiretest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
)

// FPDU is one received FPDU.
type FPDU struct {
	ULPDU  []byte
	Faults []string // what is wrong with the framing
}

// Tagged reports the T bit.
func (f *FPDU) Tagged() bool { return len(f.ULPDU) > 0 && ddp.IsTagged(f.ULPDU[0]) }

// Last reports the L bit.
func (f *FPDU) Last() bool { return len(f.ULPDU) > 0 && ddp.IsLast(f.ULPDU[0]) }

// Op is the opcode.
func (f *FPDU) Op() rdmap.Opcode {
	if len(f.ULPDU) < 2 {
		return 0xf
	}
	return rdmap.Opcode(f.ULPDU[1] & 0x0f)
}

// TaggedHeader and UntaggedHeader read the header; the FPDU must be of that kind and not short.
func (f *FPDU) TaggedHeader() ddp.Tagged { return ddp.GetTagged(f.ULPDU) }

// UntaggedHeader is the other kind.
func (f *FPDU) UntaggedHeader() ddp.Untagged { return ddp.GetUntagged(f.ULPDU) }

// Short reports whether a ULPDU has no room for its DDP header.
func (f *FPDU) Short() bool { return len(f.ULPDU) < 2 || len(f.ULPDU) < ddp.HeaderLen(f.ULPDU[0]) }

// Payload is what follows the DDP header.
func (f *FPDU) Payload() []byte {
	if f.Short() {
		return nil
	}
	return f.ULPDU[ddp.HeaderLen(f.ULPDU[0]):]
}

// Terminate is the reason a Terminate carries; ok is false for other messages.
func (f *FPDU) Terminate() (t rdmap.Terminate, ok bool) {
	if f.Short() || f.Tagged() || f.Op() != rdmap.OpTerminate {
		return rdmap.Terminate{}, false
	}
	t, _, err := rdmap.ParseTerminate(f.Payload())
	return t, err == nil
}

// String is the FPDU in one line.
func (f *FPDU) String() string {
	switch {
	case f.Short():
		return fmt.Sprintf("short ulpdu %x", f.ULPDU)
	case f.Tagged():
		h := f.TaggedHeader()
		return fmt.Sprintf("%v stag %08x to %#x, %d octets, last %t", f.Op(), h.STag, h.TO, len(f.Payload()), h.Last)
	}
	if t, ok := f.Terminate(); ok {
		return fmt.Sprintf("Terminate %v", t.Code)
	}
	h := f.UntaggedHeader()
	return fmt.Sprintf("%v qn %d msn %d mo %d, %d octets, last %t", f.Op(), h.QN, h.MSN, h.MO, len(f.Payload()), h.Last)
}

// Reader cuts one direction of a stream into FPDUs. Unlike a real receiver it
// goes on after a fault, as far as the lengths still make sense.
type Reader struct {
	CRC     bool
	Markers bool

	in  []byte // octets of the FPDU so far, markers included
	pos int    // octets of the stream before in
}

// Feed adds received octets.
func (r *Reader) Feed(b []byte) { r.in = append(r.in, b...) }

// Partial is the number of octets that belong to an unfinished FPDU.
func (r *Reader) Partial() int { return len(r.in) }

// Next gives the next whole FPDU.
func (r *Reader) Next() (*FPDU, bool) {
	if !r.Markers && (len(r.in) < mpa.LenFieldLen || len(r.in) < mpa.FPDULen(int(binary.BigEndian.Uint16(r.in)))) {
		return nil, false
	}
	f := &FPDU{}
	var body []byte // without markers
	var covered int // octets of in that the CRC covers
	fpdu, need := -1, mpa.LenFieldLen
	at := 0
	if !r.Markers {
		at = mpa.FPDULen(int(binary.BigEndian.Uint16(r.in)))
		need, covered = at, at-mpa.CRCLen
		body = append(body, r.in[:at]...)
	}
	for len(body) < need {
		if r.Markers && (r.pos+at)%mpa.MarkerInterval == 0 {
			if len(r.in)-at < mpa.MarkerLen {
				return nil, false
			}
			m := r.in[at : at+mpa.MarkerLen]
			want := 0
			if fpdu >= 0 {
				want = at - fpdu
			}
			// RFC 5044 §4.2: FPDUPTR reaches back to the length field, reserved octets are zero.
			if got := int(binary.BigEndian.Uint16(m[2:])); got != want&0xffff || m[0]|m[1] != 0 {
				f.Faults = append(f.Faults, fmt.Sprintf("marker %x, %d octets into the fpdu", m, want))
			}
			at += mpa.MarkerLen
			if len(body) == need-mpa.CRCLen {
				covered = at
			}
			continue
		}
		if at == len(r.in) {
			return nil, false
		}
		if fpdu < 0 {
			fpdu = at
		}
		body = append(body, r.in[at])
		at++
		if len(body) == mpa.LenFieldLen {
			need = mpa.FPDULen(int(binary.BigEndian.Uint16(body)))
		}
		if len(body) == need-mpa.CRCLen {
			covered = at
		}
	}
	end := mpa.LenFieldLen + int(binary.BigEndian.Uint16(body))
	f.ULPDU = body[mpa.LenFieldLen:end:end]
	if pad := body[end : need-mpa.CRCLen]; bytes.Count(pad, []byte{0}) != len(pad) {
		f.Faults = append(f.Faults, "pad is not zero") // RFC 5044 §4.1
	}
	if r.CRC {
		if got, want := mpa.GetCRC(body[need-mpa.CRCLen:]), mpa.CRC(0, r.in[:covered]); got != want {
			f.Faults = append(f.Faults, fmt.Sprintf("crc %08x, want %08x", got, want))
		}
	}
	r.in = append(r.in[:0], r.in[at:]...)
	r.pos += at
	return f, true
}
