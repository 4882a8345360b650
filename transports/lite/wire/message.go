package wire

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"
)

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
func Imm(kind uint32, port int, low uint32) uint32 {
	return kind | uint32(port)<<24 | low&0xffffff
}

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
