// Package wire encodes what the nodes of a LITE cluster send to each other: private data, immediate data, headers in
// rings and reply buffers, and words that one side writes into the other's memory. Everything is big-endian except the
// checked words. Parsers take any bytes, never panic, and fail with an error that wraps [ErrPeer].
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// ErrPeer wraps every refusal.
var ErrPeer = errors.New("the peer does not speak this protocol")

// GreetingLen fits the 56 bytes that rdma_cm leaves of the InfiniBand REQ (rdma_connect(3)).
const GreetingLen = 52

type framed struct {
	Magic   [4]byte
	Version uint8
	Greeting
	_ [4]byte
}

// NoNode is the number of a node that has none yet.
const NoNode = 0xff

const version = 1

var magic = [4]byte{'L', 'I', 'T', 'E'}

// Greeting is what either side states when a queue pair is connected.
type Greeting struct {
	Node  uint8 // the sender; NoNode asks for a number
	You   uint8 // the receiver; in an answer to NoNode, the number
	Link  uint8 // which of the queue pairs to that node this is
	Links uint8 // how many there are
	Sends bool  // arrivals are notified by sends, not by immediate data
	_     [2]byte
	RKey  uint32  // of the arena
	Base  uint64  // address of the arena
	Size  uint64  // bytes
	Token [8]byte // of the cluster
	Ring  uint32  // of the peer's control messages, offset in the arena in granules
	Head  uint32  // where the peer writes the head of our control messages, likewise
}

// TokenOf is what nodes show instead of the cluster's secret. Who listens on the wire can repeat it.
func TokenOf(secret string) (t [8]byte) {
	sum := sha256.Sum256([]byte("rdmaperf lite " + secret))
	copy(t[:], sum[:])
	return t
}

// Encode is the greeting as private data.
func (g *Greeting) Encode() []byte {
	b, err := binary.Append(nil, binary.BigEndian, framed{Magic: magic, Version: version, Greeting: *g})
	if err != nil {
		panic(err) // all its fields have a size
	}
	return b
}

// ParseGreeting takes more bytes than it needs: some devices pad private data (rdma_get_cm_event(3)).
func ParseGreeting(b []byte) (g Greeting, err error) {
	if len(b) < GreetingLen || [4]byte(b[:4]) != magic {
		return g, fmt.Errorf("%w: private data is not of a lite node", ErrPeer)
	}
	if b[4] != version {
		return g, fmt.Errorf("%w: it speaks version %d, this side %d", ErrPeer, b[4], version)
	}
	var f framed
	if _, err := binary.Decode(b, binary.BigEndian, &f); err != nil {
		return g, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	g = f.Greeting
	// An arena that wraps would make every bounds check meaningless.
	if b[9] > 1 || b[10]|b[11] != 0 || g.Size == 0 || g.Base+g.Size < g.Base || g.Links == 0 || g.Link >= g.Links {
		return Greeting{}, fmt.Errorf("%w: malformed greeting", ErrPeer)
	}
	return g, nil
}

// Immediate data says what arrived: 2 bits of kind, 6 of port, 24 of offset in the
// ring, or of the caller's slot (the "2-6-24" of LITE's code).
const (
	ImmRequest = 0x00000000 // with a reply
	ImmOneWay  = 0x80000000 // without
	ImmReply   = 0x40000000
	immKind    = 0xc0000000

	// Ports is how many ports 6 bits make; the last is the nodes' own.
	Ports       = 64
	ControlPort = Ports - 1
)

// Imm builds immediate data; low is an offset or a slot, 24 bits.
func Imm(kind uint32, port int, low uint32) uint32 { return kind | uint32(port)<<24 | low&0xffffff }

// ParseImm takes it apart. Kinds with both bits set do not exist.
func ParseImm(imm uint32) (kind uint32, port int, low uint32, ok bool) {
	kind = imm & immKind
	return kind, int(imm >> 24 & (Ports - 1)), imm & 0xffffff, kind != immKind
}

// RequestLen is the header of a record in a ring.
//
//	start 8 | reply address 8 | length 4 | reply room 4 | slot 4 | priority 1 | zero 3
const RequestLen = 32

// Request is that header.
type Request struct {
	Start    uint64 // position of the span in the ring
	ReplyTo  uint64 // address in the caller's arena
	Len      uint32 // payload bytes behind the header
	Room     uint32 // bytes at ReplyTo, with the reply's header
	Slot     uint32 // of the caller, 24 bits
	Priority uint8
}

// Put writes the header to b, which has at least RequestLen bytes.
func (r *Request) Put(b []byte) {
	_ = b[RequestLen-1]
	binary.BigEndian.PutUint64(b, r.Start)
	binary.BigEndian.PutUint64(b[8:], r.ReplyTo)
	binary.BigEndian.PutUint32(b[16:], r.Len)
	binary.BigEndian.PutUint32(b[20:], r.Room)
	binary.BigEndian.PutUint32(b[24:], r.Slot)
	binary.BigEndian.PutUint32(b[28:], uint32(r.Priority)<<24)
}

// GetRequest reads the header at the front of b, the rest of the ring from there on.
func GetRequest(b []byte) (r Request, err error) {
	if len(b) < RequestLen {
		return r, fmt.Errorf("%w: header in the last %d bytes of the ring", ErrPeer, len(b))
	}
	r = Request{
		Start:    binary.BigEndian.Uint64(b),
		ReplyTo:  binary.BigEndian.Uint64(b[8:]),
		Len:      binary.BigEndian.Uint32(b[16:]),
		Room:     binary.BigEndian.Uint32(b[20:]),
		Slot:     binary.BigEndian.Uint32(b[24:]),
		Priority: b[28],
	}
	if uint64(r.Len) > uint64(len(b)-RequestLen) || r.Slot>>24 != 0 || b[29]|b[30]|b[31] != 0 {
		return Request{}, fmt.Errorf("%w: malformed header of a record of %d bytes", ErrPeer, r.Len)
	}
	return r, nil
}

// ReplyLen is the header of a reply in the caller's buffer.
//
//	length 4 | code 4 | slot 4 | zero 4
const ReplyLen = 16

// Reply is that header.
type Reply struct {
	Len  uint32 // payload bytes behind the header
	Code int32  // 0, or one of the errors of package lite
	Slot uint32
}

// Put writes the header to b, which has at least ReplyLen bytes.
func (r *Reply) Put(b []byte) {
	_ = b[ReplyLen-1]
	binary.BigEndian.PutUint32(b, r.Len)
	binary.BigEndian.PutUint32(b[4:], uint32(r.Code))
	binary.BigEndian.PutUint32(b[8:], r.Slot)
	binary.BigEndian.PutUint32(b[12:], 0)
}

// GetReply reads the header of the reply in b.
func GetReply(b []byte) (r Reply, err error) {
	if len(b) < ReplyLen {
		return r, fmt.Errorf("%w: reply of %d bytes", ErrPeer, len(b))
	}
	r = Reply{Len: binary.BigEndian.Uint32(b), Code: int32(binary.BigEndian.Uint32(b[4:])),
		Slot: binary.BigEndian.Uint32(b[8:])}
	if uint64(r.Len) > uint64(len(b)-ReplyLen) {
		return Reply{}, fmt.Errorf("%w: reply of %d bytes in a buffer of %d", ErrPeer, r.Len, len(b))
	}
	return r, nil
}

// WordLen is the size of a checked word: the value and its complement, in the byte order of the machine, so that half
// of one is never believed. Both nodes must have the same byte order, as for atomics.
const WordLen = 16

// PutWord writes a checked word to b.
func PutWord(b []byte, v uint64) {
	binary.NativeEndian.PutUint64(b, v)
	binary.NativeEndian.PutUint64(b[8:], ^v)
}

// Word reads the checked word at the front of b, aligned to 8 bytes; false while half of what the peer writes is here.
func Word(b []byte) (uint64, bool) {
	_ = b[WordLen-1]
	v := atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0])))
	return v, atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[8]))) == ^v
}
