package peerrpc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

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
func (f Form) String() string {
	if f < numForms {
		return formNames[f]
	}
	return "form?"
}

// greeting is the private data of either end, big-endian:
//
//	magic 4 | form 1 | zero 1 | callers 2 | rkey 4 | longest request 4 | longest response 4 | addr 8 | length 8 |
//	token 8
type greeting struct {
	form              Form
	callers           uint16
	rkey              uint32
	request, response uint32
	addr, len         uint64
	token             [8]byte
}

const greetingLen = 44

var magic = [4]byte{'r', 'p', 'p', 's'} // rppr had no token

// tokenOf is what either end shows instead of the secret of both.
func tokenOf(secret []byte) (t [8]byte) {
	if len(secret) > 0 {
		sum := sha256.Sum256(append([]byte("rdmaperf peerrpc "), secret...))
		copy(t[:], sum[:])
	}
	return t
}

func (g *greeting) encode() []byte {
	b := make([]byte, greetingLen)
	copy(b, magic[:])
	b[4] = uint8(g.form)
	binary.BigEndian.PutUint16(b[6:], g.callers)
	binary.BigEndian.PutUint32(b[8:], g.rkey)
	binary.BigEndian.PutUint32(b[12:], g.request)
	binary.BigEndian.PutUint32(b[16:], g.response)
	binary.BigEndian.PutUint64(b[20:], g.addr)
	binary.BigEndian.PutUint64(b[28:], g.len)
	copy(b[36:], g.token[:])
	return b
}

// parseGreeting takes more bytes than it needs: devices pad private data.
func parseGreeting(b []byte) (g greeting, err error) {
	if len(b) < greetingLen || [4]byte(b[:4]) != magic {
		return g, fmt.Errorf("%w: private data is not of these calls", rdma.ErrProtocol)
	}
	g = greeting{form: Form(b[4]), callers: binary.BigEndian.Uint16(b[6:]), rkey: binary.BigEndian.Uint32(b[8:]),
		request: binary.BigEndian.Uint32(b[12:]), response: binary.BigEndian.Uint32(b[16:]),
		addr: binary.BigEndian.Uint64(b[20:]), len: binary.BigEndian.Uint64(b[28:]), token: [8]byte(b[36:])}
	if g.form >= numForms || b[5] != 0 || g.callers == 0 || g.addr+g.len < g.addr {
		return greeting{}, fmt.Errorf("%w: malformed private data", rdma.ErrProtocol)
	}
	return g, nil
}

// header is the last 16 bytes of a message in a cell, behind the payload, and the first
// 16 of one that is sent. Its last byte is the last of all in a cell.
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

// parseHeader checks a message against the longest payload and the number of callers.
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
