package grpcrdma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A record is what one write places into the ring:
//
//	info 4 | info^headerMark 4 | payload | zeros | trailerMark 1     little-endian
//	info: payload length 27 bits, bit 29 control, bit 30 the writer had to wait for room, bit 31 the end of the stream
//
// A control record is of this layer: its payload is an offer of another ring, or nothing, when what follows lies in
// the ring that was offered.
//
// The ring is zero before a record is placed. A device may place its bytes in any
// order but the last one: each byte of a header is checked by another one, so a
// header with bytes missing is either recognised as such or, where the missing
// byte is zero anyway, right.
const (
	unit       = 16 // records begin at and fill whole units
	headerLen  = 8
	overhead   = headerLen + 1
	maxPayload = 1<<27 - 1
	ctlFlag    = 1 << 29
	shortFlag  = 1 << 30
	finFlag    = 1 << 31

	headerMark  = 0x9ec3a75b // no byte of it is zero
	trailerMark = 0xa5
)

// recordLen is the length of a record with n payload bytes.
func recordLen(n int) int { return (n + overhead + unit - 1) &^ (unit - 1) }

// payloadIn is the most payload a record of the given length can carry.
func payloadIn(total int) int { return total - overhead }

// putRecord writes header, padding and trailer around a payload of n bytes that
// is at b[headerLen:] already. len(b) is the record's length.
func putRecord(b []byte, n int, flags uint32) {
	info := uint32(n) | flags
	binary.LittleEndian.PutUint32(b, info)
	binary.LittleEndian.PutUint32(b[4:], info^headerMark)
	clear(b[headerLen+n:])
	b[len(b)-1] = trailerMark
}

// record is a parsed header.
type record struct {
	payload int
	total   int
	flags   uint32
}

// valid is true for a length and flags that putRecord makes of what this package writes.
func (r *record) valid() bool {
	switch r.flags {
	case 0, shortFlag:
		return r.payload > 0
	case ctlFlag:
		return r.payload == 0 || r.payload == offerLen
	}
	return r.flags == finFlag && r.payload == 0
}

// errRecord: the peer wrote something that is no record.
var errRecord = fmt.Errorf("%w: malformed record in the ring", rdma.ErrProtocol)

// look finds the record at off in the ring. ok=false while it is not there. A watched ring shows it
// by its memory alone; else avail bytes have arrived, and they must be whole records.
func look(ring []byte, off int, watched bool, avail uint64) (r record, ok bool, err error) {
	if !watched && avail == 0 {
		return r, false, nil
	}
	word := loadWord(ring, off)
	info := uint32(word)
	if uint32(word>>32) != info^headerMark {
		if watched {
			return r, false, nil
		}
		return r, false, errRecord
	}
	r = record{payload: int(info & maxPayload), flags: info &^ maxPayload}
	r.total = recordLen(r.payload)
	if !r.valid() || r.total > len(ring)-off || !watched && uint64(r.total) > avail {
		return r, false, errRecord
	}
	switch rdma.LoadByte(ring, off+r.total-1) {
	case trailerMark:
		return r, true, nil
	case 0:
		if watched {
			return r, false, nil
		}
	}
	return r, false, errRecord
}

// loadWord reads 8 aligned bytes that the device may be writing.
func loadWord(b []byte, off int) uint64 {
	_ = b[off+7]
	w := atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[off])))
	var host [8]byte
	binary.NativeEndian.PutUint64(host[:], w)
	return binary.LittleEndian.Uint64(host[:])
}

// A credit cell says how far the peer's reader is:
//
//	bytes consumed 8 | notices taken 8 | check 8 | zero 8     little-endian
//
// It is overwritten as a whole, and read without asking: the check tells a cell
// that is being placed from one that holds.
const cellLen = 32

type credit struct{ bytes, notices uint64 }

func (c credit) check() uint64 {
	return (c.bytes^bits.RotateLeft64(c.notices, 29))*0x9e3779b97f4a7c15 ^ c.notices ^ 0x5851f42d4c957f2d
}

func putCredit(b []byte, c credit) {
	binary.LittleEndian.PutUint64(b, c.bytes)
	binary.LittleEndian.PutUint64(b[8:], c.notices)
	binary.LittleEndian.PutUint64(b[16:], c.check())
	clear(b[24:cellLen])
}

func loadCredit(b []byte) (c credit, ok bool) {
	c = credit{loadWord(b, 0), loadWord(b, 8)}
	return c, loadWord(b, 16) == c.check()
}

var errCredit = fmt.Errorf("%w: credit for what was never sent", rdma.ErrProtocol)

// plausible is false for more than what was sent.
func (c credit) plausible(sent credit) bool {
	return c.bytes <= sent.bytes && c.notices <= sent.notices && c.bytes%unit == 0
}

// A notice is 32 bits, as immediate data or as the whole body of a send: bit 31
// says that the credit cell was written, else the number of units written into
// the ring since the last notice.
const (
	noticeLen    = 4
	noticeCredit = 1 << 31
)

var errNotice = fmt.Errorf("%w: notice of more than the ring can hold", rdma.ErrProtocol)

// noticed moves the end of what is in the ring. consumed is the reader's position.
func noticed(word uint32, limit, consumed, ring uint64) (uint64, error) {
	n := uint64(word) * unit
	if word&noticeCredit != 0 || n == 0 || limit-consumed+n > ring {
		return limit, errNotice
	}
	return limit + n, nil
}

// The greeting travels as private data of the connection set-up, in both
// directions, big-endian:
//
//	magic 4 | version 1 | flags 1 | zero 2 | rkey 4 | ring length 4 | address 8 | notice depth 4 | zero 4
const (
	greetingLen = 32
	version     = 2 // 2: rings of another size are offered
	wantNotices = 1 // flag: write a notice behind every record

	minRing = 4 << 10
	maxRing = 1 << 30
	maxDeep = 1 << 16 // bound of a peer's notice depth; more than any queue
)

var magic = [4]byte{'r', 'p', 'b', 's'}

var (
	errMagic    = errors.New("private data is not of this transport")
	errGreeting = errors.New("malformed private data")
)

// greeting is one side's ring: the credit cell at addr, the ring ringOffset behind it.
type greeting struct {
	notices bool
	depth   uint32 // notices it can take before it returns credit for them
	rkey    uint32
	addr    uint64
	ring    uint32
}

func (g *greeting) encode() []byte {
	b := make([]byte, greetingLen)
	copy(b, magic[:])
	b[4] = version
	if g.notices {
		b[5] = wantNotices
	}
	binary.BigEndian.PutUint32(b[8:], g.rkey)
	binary.BigEndian.PutUint32(b[12:], g.ring)
	binary.BigEndian.PutUint64(b[16:], g.addr)
	binary.BigEndian.PutUint32(b[24:], g.depth)
	return b
}

// parseGreeting takes more bytes than it needs: some devices pad private data
// with zeros to the length of the field (rdma_get_cm_event(3)).
func parseGreeting(b []byte) (greeting, error) {
	if len(b) < greetingLen || [4]byte(b[:4]) != magic {
		return greeting{}, fmt.Errorf("%w: %w", rdma.ErrProtocol, errMagic)
	}
	if b[4] != version {
		return greeting{}, fmt.Errorf("%w: peer speaks version %d, this side %d", rdma.ErrProtocol, b[4], version)
	}
	g := greeting{
		notices: b[5]&wantNotices != 0,
		rkey:    binary.BigEndian.Uint32(b[8:]),
		ring:    binary.BigEndian.Uint32(b[12:]),
		addr:    binary.BigEndian.Uint64(b[16:]),
		depth:   binary.BigEndian.Uint32(b[24:]),
	}
	if b[5]&^wantNotices != 0 || b[6]|b[7] != 0 || g.depth == 0 || g.depth > maxDeep ||
		g.addr+ringOffset < g.addr || !plausibleRing(g.addr+ringOffset, g.ring) {
		return greeting{}, fmt.Errorf("%w: %w", rdma.ErrProtocol, errGreeting)
	}
	return g, nil
}

func plausibleRing(addr uint64, size uint32) bool {
	return size >= minRing && size <= maxRing && bits.OnesCount32(size) == 1 && addr+uint64(size) > addr && addr%unit == 0
}

// An offer is the payload of a control record: the reader's other ring, little-endian.
//
//	rkey 4 | length 4 | address 8
const offerLen = 16

func putOffer(rkey, size uint32, addr uint64) (b [offerLen]byte) {
	binary.LittleEndian.PutUint32(b[:], rkey)
	binary.LittleEndian.PutUint32(b[4:], size)
	binary.LittleEndian.PutUint64(b[8:], addr)
	return b
}

var errOffer = fmt.Errorf("%w: offer of a ring that is none, or that was not called for", rdma.ErrProtocol)

func parseOffer(b []byte) (*peerRing, error) {
	r := &peerRing{rkey: binary.LittleEndian.Uint32(b), addr: binary.LittleEndian.Uint64(b[8:])}
	size := binary.LittleEndian.Uint32(b[4:])
	if !plausibleRing(r.addr, size) {
		return nil, errOffer
	}
	r.size = uint64(size)
	return r, nil
}
