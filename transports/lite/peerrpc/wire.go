package peerrpc

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Form is what carries the calls.
type Form uint8

const (
	Send  Form = iota // a send and a receive each way
	Write             // a write each way into polled rings
	numForms
)

var formNames = [numForms]string{"send", "write"}

// String is the name as in a stack's name.
func (f Form) String() string { return formNames[f] }

// greeting is the private data of either end, big-endian.
type greeting struct {
	Magic             [4]byte
	Form              Form
	_                 uint8
	Callers           uint16
	RKey              uint32
	Request, Response uint32 // longest payloads, bytes
	Addr, Len         uint64
	Token             [8]byte
}

var magic = [4]byte{'r', 'p', 'p', 's'} // rppr had no token

// tokenOf is what either end shows instead of the secret of both.
func tokenOf(secret []byte) (t [8]byte) {
	if len(secret) > 0 {
		sum := sha256.Sum256(append([]byte("rdmaperf peerrpc "), secret...))
		copy(t[:], sum[:])
	}
	return t
}

func (g greeting) encode() []byte {
	g.Magic = magic
	b, err := binary.Append(nil, binary.BigEndian, g)
	if err != nil {
		panic(err) // all its fields have a size
	}
	return b
}

// parseGreeting takes more bytes than it needs: devices pad private data. The peer must show the token.
func parseGreeting(b []byte, token [8]byte) (g greeting, err error) {
	_, err = binary.Decode(b, binary.BigEndian, &g)
	switch {
	case err != nil || g.Magic != magic:
		return g, fmt.Errorf("%w: private data is not of these calls", rdma.ErrProtocol)
	case g.Form >= numForms || b[5] != 0 || g.Callers == 0 || g.Addr+g.Len < g.Addr:
		return g, fmt.Errorf("%w: malformed private data", rdma.ErrProtocol)
	case subtle.ConstantTimeCompare(g.Token[:], token[:]) != 1:
		return g, fmt.Errorf("%w: the peer has another secret", rdma.ErrProtocol)
	}
	return g, nil
}

// header is the last 16 bytes of a message in a cell, behind the payload, and the first 16 of one that is sent.
//
//	length 4 | caller 2 | what 1 | zero 8 | turn 1
//
// what is the method of a request, and of a response 0, or the code of its error and 1.
type header struct {
	len  uint32
	slot uint16
	what uint8
	turn uint8
}

const headerLen = 16

func (h *header) put(b []byte) {
	clear(b[:headerLen])
	binary.BigEndian.PutUint32(b, h.len)
	binary.BigEndian.PutUint16(b[4:], h.slot)
	b[6], b[headerLen-1] = h.what, h.turn
}

func parseHeader(b []byte, most uint32, callers int) (h header, err error) {
	if len(b) < headerLen {
		return h, fmt.Errorf("%w: message of %d bytes", rdma.ErrProtocol, len(b))
	}
	h = header{len: binary.BigEndian.Uint32(b), slot: binary.BigEndian.Uint16(b[4:]), what: b[6], turn: b[headerLen-1]}
	if h.len > most || int(h.slot) >= callers {
		return header{}, fmt.Errorf("%w: message of %d bytes for caller %d, at most %d and %d callers",
			rdma.ErrProtocol, h.len, h.slot, most, callers)
	}
	return h, nil
}

// nextTurn counts the uses of a cell; 0 is what new memory holds.
func nextTurn(t uint8) uint8 {
	if t++; t == 0 {
		t = 1
	}
	return t
}

// turnOf is the last byte of a cell, loaded as one word with it: the write changes it last, and the rest is read
// behind.
func turnOf(cell []byte) uint8 {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], atomic.LoadUint64((*uint64)(unsafe.Pointer(&cell[len(cell)-8]))))
	return b[7]
}
