package iwarp

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"

	"golang.org/x/sys/unix"
)

type source uint8

const (
	srcNone source = iota
	srcSQ          // the send queue entry at sqNext
	srcRead        // the inbound read or atomic request at the head of irq
)

// txState frames messages as a list of pieces: runs of buf, and registered memory for large payloads.
type txState struct {
	buf    []byte
	n      int // octets of buf in use
	vec    []unix.Iovec
	keys   []uint32        // of registered memory, the registration that each piece was found by; else 0
	vn     int             // pieces in use
	vh     int             // first piece not wholly sent
	framed uint64          // octets framed since the stream began
	sent   uint64          // octets taken by the socket
	acked  uint64          // of those, with OnAck, octets that the peer's stack has, as far as is known
	seg    int             // of a stack InPlace: octets of a segment; else 0
	short  int             // payloads up to this are copied beside their headers
	refs   stream.Referrer // the stream, where payloads are sent by reference; else nil
	refEnd uint64          // octets framed up to the last one that is referenced
	group  int             // octets framed for the segment at hand
	cuts   []int           // pieces that begin a segment
	batch  uint64          // octets framed before they are handed to the stack
	moved  uint64          // octets of payload copied beside their headers
	full   bool            // more would have been framed into a longer buf
	copied bool            // pieces point into a private copy: the stream is ending

	src     source
	off     uint32 // octets of the message in progress that are framed
	turn    bool   // after a send-queue message, a read response goes first
	behind  bool   // the Write of a write with immediate is framed, its Immediate Data is not
	sendMSN uint32
	readMSN uint32
	respMSN uint32 // of Atomic Responses

	mulpdu  int
	crc     bool
	fetch   bool // without a CRC nobody has read what the kernel is to copy
	markers bool
	mw      mpa.MarkerWriter
	scratch []byte    // one ULPDU, with markers only
	start   mpa.State // of the start-up: nothing is sent before it allows that
	blocked bool      // the socket buffer is full
	more    bool      // a turn ended before everything was handed over
	drained bool      // SQD was reported
}

// init begins a stream. seg is the segment size of a stack that keeps segments apart, or 0.
func (t *txState) init(mulpdu, seg int, crc, markers bool, start mpa.State) {
	*t = txState{
		buf: make([]byte, leastBuf), vec: make([]unix.Iovec, leastVec), keys: make([]uint32, leastVec),
		seg: seg, batch: flushAt, sendMSN: 1, readMSN: 1, respMSN: 1,
		mulpdu: mulpdu, crc: crc, fetch: !crc && seg == 0, markers: markers, start: start, short: copyMax,
	}
	if markers {
		t.scratch = make([]byte, 0, mpa.MaxULPDU)
	}
	if seg > 0 {
		t.cuts, t.batch = make([]int, 0, len(t.vec)), batchAligned
	}
}

// byReference has the stack of c read long payloads where they are until they are acknowledged.
func (t *txState) byReference(c stream.Referrer) { t.refs, t.short = c, copyMaxRef }

func (t *txState) empty() bool { return t.framed == t.sent }

// unsent reports whether another turn is due: for octets that are framed, or behind a turn that was long enough.
func (t *txState) unsent() bool { return !t.empty() || t.more }

// reserve is the next n octets of buf, joined to the last piece if they adjoin.
func (t *txState) reserve(n int) []byte {
	b := t.buf[t.n : t.n+n : t.n+n]
	base := unsafe.SliceData(b)
	t.n += n
	t.framed += uint64(n)
	if t.vn > t.vh && (len(t.cuts) == 0 || t.cuts[len(t.cuts)-1] != t.vn) {
		last := &t.vec[t.vn-1]
		if unsafe.Add(unsafe.Pointer(last.Base), last.Len) == unsafe.Pointer(base) {
			last.Len += uint64(n)
			return b
		}
	}
	t.vec[t.vn], t.keys[t.vn] = unix.Iovec{Base: base, Len: uint64(n)}, 0
	t.vn++
	return b
}

func (t *txState) reference(p piece) {
	n := uint64(len(p.b))
	t.vec[t.vn], t.keys[t.vn] = unix.Iovec{Base: unsafe.SliceData(p.b), Len: n}, p.key
	t.vn++
	t.framed += n
	t.refEnd = t.framed
}

// room reports whether one more FPDU of size payload octets, copied or not, surely fits, and a Terminate behind it.
func (t *txState) room(payload int, copied bool) bool {
	const pieces = 2 + rdma.MaxSGE + 1
	// the longest header
	need := terminateLen + mpa.LenFieldLen + ddp.UntaggedLen + rdmap.AtomicRequestLen + 3 + mpa.CRCLen
	if t.markers {
		need += payload + payload/(mpa.MarkerInterval-mpa.MarkerLen)*mpa.MarkerLen + 4*mpa.MarkerLen
	} else if copied || payload <= t.short {
		need += payload
	}
	if len(t.vec)-t.vn < pieces && len(t.vec) < mostVec {
		t.vec = append(t.vec, make([]unix.Iovec, len(t.vec))...)
		t.keys = append(t.keys, make([]uint32, len(t.keys))...)
	}
	if len(t.buf)-t.n < need {
		t.full = true
		if t.n == 0 {
			t.grow()
		}
	}
	return len(t.buf)-t.n >= need && len(t.vec)-t.vn >= pieces
}

func (t *txState) grow() {
	if t.full = false; len(t.buf) < mostBuf && !t.copied {
		t.buf = make([]byte, mostBuf)
	}
}

// segment is the payload of all segments but the last: equal parts, at cache lines, so that no short rest follows.
func (t *txState) segment(size uint32, header int) uint32 {
	longest := uint32(t.mulpdu - header)
	if size <= longest {
		return longest
	}
	parts := (size-1)/longest + 1
	return min(((size-1)/parts+64)&^63, longest)
}

// touches reports whether unsent pieces were found by m, and not by another registration of the memory.
func (t *txState) touches(m *mr) bool {
	return !t.copied && slices.Contains(t.keys[t.vh:t.vn], m.stag)
}

// detach copies what is not sent yet, flushAt octets and one segment at most, to free the user's memory.
func (t *txState) detach() {
	t.more = false // nothing is framed any more
	if t.copied || t.empty() {
		return
	}
	var all []byte
	for _, v := range t.vec[t.vh:t.vn] {
		all = append(all, unsafe.Slice(v.Base, v.Len)...)
	}
	t.buf = append(all, make([]byte, terminateLen)...)
	t.n = len(all)
	t.vh, t.vn = 0, 1
	t.cuts = t.cuts[:0]
	t.vec[0], t.keys[0] = unix.Iovec{Base: unsafe.SliceData(t.buf), Len: uint64(len(all))}, 0
	t.copied = true
}

// flush hands framed octets to the socket until it is full. An error means the stream is lost.
func (t *txState) flush(c stream.Conn) error {
	t.blocked = false
	cut := 0
	for t.vh < t.vn {
		end := t.vn
		for cut < len(t.cuts) && t.cuts[cut] <= t.vh {
			cut++
		}
		if cut < len(t.cuts) {
			end = t.cuts[cut]
		}
		var n int
		var err error
		if t.refs != nil {
			n, err = t.refs.SendvRef(t.vec[t.vh:end], t.buf)
		} else if end-t.vh == 1 {
			v := &t.vec[t.vh]
			n, err = c.Send(unsafe.Slice(v.Base, v.Len))
		} else {
			n, err = c.Sendv(t.vec[t.vh:end])
		}
		if err == stream.ErrAgain {
			t.blocked = true
			return nil
		}
		if err != nil {
			return err
		}
		t.sent += uint64(n)
		t.advance(uint64(n))
	}
	t.vh, t.vn, t.n = 0, 0, 0
	t.cuts, t.group = t.cuts[:0], 0
	if t.full {
		t.grow()
	}
	return nil
}

func (t *txState) advance(n uint64) {
	for n > 0 {
		v := &t.vec[t.vh]
		if n < v.Len {
			v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
			v.Len -= n
			return
		}
		n -= v.Len
		t.vh++
	}
}

// align begins a segment where an FPDU would not fit the one at hand (RFC 5044 §5.1).
func (t *txState) align(fpdu int) {
	if t.seg == 0 {
		return
	}
	if t.group+fpdu > t.seg && t.group > 0 && t.vn > 0 {
		t.cuts = append(t.cuts, t.vn)
		t.group = 0
	}
	t.group += fpdu
}

// piece is a run of payload, and the key of the registration that it was found by; 0: of none.
type piece struct {
	b   []byte
	key uint32
}

var padding [3]byte

// frame lays one FPDU (RFC 5044 §4). pieces, size octets, are copied if short or copied is set; else they must not
// change until the socket has read them, or with refs until the peer has them.
func (t *txState) frame(header []byte, pieces []piece, size int, copied bool) {
	ulpdu := len(header) + size
	pad := mpa.Pad(ulpdu)
	t.align(mpa.LenFieldLen + ulpdu + pad + mpa.CRCLen)
	if t.markers {
		u := append(t.scratch[:0], header...)
		for _, p := range pieces {
			u = append(u, p.b...)
			t.moved += uint64(len(p.b))
		}
		// reserve first, write after: the writer appends into exactly that room.
		at := t.buf[t.n:t.n]
		out := t.mw.Append(at, u, t.crc)
		t.reserve(len(out))
		return
	}
	if copied || size <= t.short {
		b := t.reserve(mpa.LenFieldLen + ulpdu + pad + mpa.CRCLen)
		binary.BigEndian.PutUint16(b, uint16(ulpdu))
		at := mpa.LenFieldLen + copy(b[mpa.LenFieldLen:], header)
		for _, p := range pieces {
			at += copy(b[at:], p.b)
		}
		t.moved += uint64(size)
		for range pad {
			b[at] = 0
			at++
		}
		sum := uint32(0)
		if t.crc {
			sum = mpa.CRC(0, b[:at])
		}
		mpa.PutCRC(b[at:], sum)
		return
	}
	b := t.reserve(mpa.LenFieldLen + len(header))
	binary.BigEndian.PutUint16(b, uint16(ulpdu))
	copy(b[mpa.LenFieldLen:], header)
	sum := uint32(0)
	if t.crc {
		sum = mpa.CRC(0, b)
	}
	for _, p := range pieces {
		if len(p.b) == 0 {
			continue
		}
		t.reference(p)
		if t.crc {
			sum = mpa.CRC(sum, p.b)
		} else if t.fetch {
			stream.Fetch(p.b)
		}
	}
	b = t.reserve(pad + mpa.CRCLen)
	copy(b, padding[:pad])
	if t.crc {
		sum = mpa.CRC(sum, b[:pad])
	}
	mpa.PutCRC(b[pad:], sum)
}
