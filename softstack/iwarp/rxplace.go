package iwarp

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// placePasses bounds the pieces of one poll to a window of segments, so that a flood starves no QP.
const placePasses = 64

// receiveInPlace parses packets where the stack keeps them: one copy, as SoftRDMA (APNet'17). What a sender did not
// align with its segments is collected in buf first.
func (q *qp) receiveInPlace() {
	for range placePasses {
		b, err := q.conn.Peek()
		if err == stream.ErrAgain {
			return
		}
		if err != nil {
			q.ended(err)
			return
		}
		q.rx.seen++
		q.consumeInPlace(b)
		if q.phase != phaseOpen {
			return // lingering reads on from here; what is closed holds nothing
		}
		if !q.conn.Skip(len(b)) || q.irq.len() > 0 {
			return // what came is for the caller; the next poll looks for more
		}
	}
}

// consumeInPlace handles every FPDU that is whole in b, or with b, and keeps the rest.
func (q *qp) consumeInPlace(b []byte) {
	r := &q.rx
	for len(b) > 0 && q.phase == phaseOpen {
		if r.re > 0 {
			b = b[q.collect(b):]
			continue
		}
		whole := len(b) + 1
		if len(b) >= mpa.LenFieldLen {
			whole = mpa.FPDULen(int(binary.BigEndian.Uint16(b)))
		}
		if len(b) < whole {
			if whole > len(r.buf) {
				r.grow()
			}
			r.re = copy(r.buf, b)
			q.counts.Staged += uint64(r.re)
			return
		}
		q.fpdu(b[:whole])
		b = b[whole:]
	}
}

// collect adds to the FPDU begun in buf, handles it when it is whole, and returns how much of b it took.
func (q *qp) collect(b []byte) int {
	r := &q.rx
	want := mpa.LenFieldLen
	if r.re >= want {
		want = mpa.FPDULen(int(binary.BigEndian.Uint16(r.buf)))
	}
	if want > len(r.buf) {
		r.grow()
	}
	n := copy(r.buf[r.re:want], b)
	r.re += n
	q.counts.Staged += uint64(n)
	if r.re > mpa.LenFieldLen && r.re == want {
		r.re = 0
		q.fpdu(r.buf[:want])
	}
	return n
}

func (q *qp) fpdu(b []byte) {
	if end := len(b) - mpa.CRCLen; q.rx.crc && mpa.GetCRC(b[end:]) != mpa.CRC(0, b[:end]) {
		q.terminate(rdmap.TermMPACRC, nil) // RFC 5044 §8 code 2
		return
	}
	q.handle(b[mpa.LenFieldLen : mpa.LenFieldLen+int(binary.BigEndian.Uint16(b))])
}
