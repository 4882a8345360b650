package iwarp

import (
	"encoding/binary"
	"io"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// rxState cuts the stream into segments. Octets wait in buf[rs:re]; during direct placement, only those behind it.
type rxState struct {
	buf    []byte
	rs, re int
	seen   uint64 // reads that brought something
	limit  int    // octets to read into buf at once
	bulk   int    // small segments to come before the stream no longer counts as bulk

	inPlace bool // segments are read where the stack keeps them
	crc     bool
	checked bool // place nothing before its CRC is known
	def     *mpa.Deframer

	seg     segment
	placing bool   // open is asked for direct placement
	direct  bool   // seg's payload is being placed by the socket
	dst     []byte // what is still missing of it
	last    []byte // with CRC: its last octet, which waits for the check
	sum     uint32 // CRC so far
	pad     int
	ahead   int           // octets to read behind dst
	fence   atomic.Uint32 // between the payload and its last octet

	sendQ ddp.RecvQueue
	readQ ddp.RecvQueue
	respQ ddp.RecvQueue
	write writeTrail
}

func (r *rxState) init(crc, markers, checked bool) {
	*r = rxState{
		buf: make([]byte, leastBuf), limit: leastBuf, crc: crc, checked: checked,
		sendQ: ddp.NewRecvQueue(ddp.QNSend, 1), readQ: ddp.NewRecvQueue(ddp.QNReadReq, 1),
		respQ: ddp.NewRecvQueue(ddp.QNAtomicResp, 1),
	}
	if markers {
		r.def = mpa.NewDeframer(true, crc)
	}
}

// inBulk reports whether the peer sends long messages, too.
func (r *rxState) inBulk() bool { return r.bulk > 0 || r.direct }

// touches reports whether the segment being placed goes into m.
func (r *rxState) touches(m *mr) bool { return r.direct && r.seg.mr == m }

// receive places segments that are complete in buf, begins direct placement of a large one, and reads on. It returns
// early where the peer asked for something: a sender may wait for that answer alone.
func (q *qp) receive() {
	r := &q.rx
	if r.inPlace {
		q.receiveInPlace()
		return
	}
	for range rxPasses {
		asked, n := 0, 0
		full := false
		var err error
		if r.direct && len(r.dst) > 0 {
			if !r.seg.mr.valid.Load() {
				q.terminate(r.seg.revoked()) // a key may be invalidated between two reads
				return
			}
			asked = len(r.dst) + r.ahead
			n, err = q.conn.Recv2(r.dst, r.buf[:r.ahead])
			if n > 0 {
				k := min(n, len(r.dst))
				q.counts.Direct += uint64(k)
				if r.crc {
					r.sum = mpa.CRC(r.sum, r.dst[:k])
				}
				r.dst = r.dst[k:]
				r.rs, r.re = 0, n-k
			}
		} else {
			room := r.buf[r.re:]
			if len(room) > r.limit {
				room = room[:r.limit]
			}
			asked = len(room)
			n, err = q.conn.Recv(room)
			r.re += n
			full = r.re == len(r.buf)
			q.counts.Staged += uint64(n)
		}
		if err == stream.ErrAgain {
			return
		}
		if err != nil {
			q.ended(err)
			return
		}
		r.seen++
		if q.consume(); q.phase != phaseOpen {
			return
		}
		if full {
			r.grow()
		}
		if n < asked || q.irq.len() > 0 {
			return
		}
	}
}

func (q *qp) consume() {
	r := &q.rx
	if r.def != nil {
		q.consumeMarked()
		return
	}
	for {
		b := r.buf[r.rs:r.re]
		if r.direct {
			covered := len(r.last) + r.pad
			if len(r.dst) > 0 || len(b) < covered+mpa.CRCLen {
				break
			}
			r.direct = false
			if r.crc && mpa.GetCRC(b[covered:]) != mpa.CRC(r.sum, b[:covered]) {
				q.terminate(rdmap.TermMPACRC, nil) // RFC 5044 §8 code 2
				return
			}
			if len(r.last) > 0 {
				if !r.seg.mr.valid.Load() {
					q.terminate(r.seg.revoked())
					return
				}
				r.fence.Add(1)
				r.last[0] = b[0]
			}
			r.rs += covered + mpa.CRCLen
			q.deliver(nil)
			if q.phase != phaseOpen {
				return
			}
			continue
		}
		if len(b) < mpa.LenFieldLen+1 {
			break
		}
		size := int(binary.BigEndian.Uint16(b))
		whole := mpa.FPDULen(size)
		if len(b) < whole {
			if whole > len(r.buf) {
				r.grow() // what follows may be here whole
				break
			}
			if q.beginDirect(b, size, whole) {
				continue
			}
			if len(r.buf)-r.rs < whole {
				copy(r.buf, b)
				r.rs, r.re = 0, len(b)
			}
			break
		}
		if r.crc {
			end := whole - mpa.CRCLen
			if mpa.GetCRC(b[end:]) != mpa.CRC(0, b[:end]) {
				q.terminate(rdmap.TermMPACRC, nil)
				return
			}
		}
		r.rs += whole
		if r.bulk > 0 {
			r.bulk--
		}
		q.handle(b[mpa.LenFieldLen : mpa.LenFieldLen+size])
		if q.phase != phaseOpen {
			return
		}
	}
	if r.rs == r.re {
		r.rs, r.re = 0, 0
	} else if r.rs > 0 && r.re == len(r.buf) {
		r.re = copy(r.buf, r.buf[r.rs:r.re])
		r.rs = 0
	}
	r.setLimit()
}

func (r *rxState) grow() {
	if len(r.buf) == mostBuf {
		return
	}
	buf := make([]byte, mostBuf)
	r.rs, r.re = 0, copy(buf, r.buf[r.rs:r.re])
	r.buf = buf
	r.setLimit()
}

// setLimit chooses how much to read into buf: all, or in a bulk stream the segment at hand and the next header, so that
// the next large payload can be placed directly.
func (r *rxState) setLimit() {
	r.limit = len(r.buf)
	if r.bulk == 0 || r.direct {
		return
	}
	r.limit = lookAhead
	if b := r.buf[r.rs:r.re]; len(b) >= mpa.LenFieldLen {
		r.limit += max(mpa.FPDULen(int(binary.BigEndian.Uint16(b)))-len(b), 0)
	}
}

// consumeMarked is consume with markers, which must come out of the payload: nothing is placed directly.
func (q *qp) consumeMarked() {
	r := &q.rx
	for {
		ulpdu, ok, err := r.def.Next()
		if err != nil {
			code := rdmap.TermMPAMarker
			if e, is := err.(*mpa.Error); is {
				code = rdmap.FromMPA(e.Code)
			}
			q.terminate(code, nil)
			return
		}
		if ok {
			if q.handle(ulpdu); q.phase != phaseOpen {
				return
			}
		}
		if r.rs == r.re {
			r.rs, r.re = 0, 0
			return
		}
		r.rs += r.def.Feed(r.buf[r.rs:r.re])
	}
}

// beginDirect tries to let the socket place the rest of a large segment. On any doubt the segment is collected whole,
// and the same tests name the fault.
func (q *qp) beginDirect(b []byte, size, whole int) bool {
	r := &q.rx
	if r.checked || whole-len(b) < directMin {
		return false
	}
	hlen := ddp.HeaderLen(b[mpa.LenFieldLen])
	if len(b) < mpa.LenFieldLen+hlen || size < hlen {
		return false
	}
	ulpdu := b[mpa.LenFieldLen:]
	payload := size - hlen
	if code := q.parse(ulpdu[:hlen], payload); code != 0 || !r.seg.placed() {
		return false
	}
	r.placing = true
	code := q.open(payload)
	r.placing = false
	if code != 0 || r.seg.dst == nil {
		return false
	}
	r.dst, r.last = r.seg.dst, nil
	if r.crc {
		// Who watches the last octet may write there as soon as it sees it, and the CRC is computed over that memory.
		r.dst, r.last = r.dst[:payload-1], r.dst[payload-1:]
	}
	here := copy(r.dst, ulpdu[hlen:])
	if r.crc {
		r.sum = mpa.CRC(0, b[:mpa.LenFieldLen+hlen+here])
	}
	r.dst = r.dst[here:]
	r.rs, r.re = 0, 0 // everything of b is used: less than a payload was here
	r.pad = mpa.Pad(size)
	// The end of this segment and a header: the next payload begins with a read, as aligned as it was sent.
	r.ahead = len(r.last) + r.pad + mpa.CRCLen + mpa.LenFieldLen + hlen
	r.direct = true
	r.bulk = bulkMemory
	return true
}

func (q *qp) handle(ulpdu []byte) {
	if len(ulpdu) == 0 || len(ulpdu) < ddp.HeaderLen(ulpdu[0]) {
		// RFC 5041 §4: no room for a DDP header.
		q.terminate(rdmap.TermMPAMarker, nil)
		return
	}
	hlen := ddp.HeaderLen(ulpdu[0])
	payload := ulpdu[hlen:]
	code := q.parse(ulpdu[:hlen], len(payload))
	if code == 0 {
		code = q.open(len(payload))
	}
	if code != 0 {
		q.terminate(code, ulpdu)
		return
	}
	s := &q.rx.seg
	switch {
	case s.dst != nil:
		copy(s.dst, payload)
		q.counts.Placed += uint64(len(payload))
	case s.scatter:
		q.scatter(payload)
	}
	q.deliver(ulpdu)
}

func (q *qp) ended(err error) {
	r := &q.rx
	partial := r.direct || r.re > r.rs || r.def != nil && r.def.Partial()
	if err != io.EOF || partial {
		q.lost()
		return
	}
	q.hungUp()
}
