package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Every message starts with 16 bytes, big-endian. Kind and offset share a word:
// 56 bits name 64 PiB of window, more than a machine maps.
//
//	 0        1                                               8
//	+--------+-----------------------------------------------+
//	|  kind  |                 window offset                 |
//	+--------+--------------+--------------------------------+
//	|        length         |         tag: imm or read       |
//	+-----------------------+--------------------------------+
//
// The payload follows, except after a read request, where length is that of the answer.
const headerLen = 16
const offsetBits = 56

// wireKind is the first byte of a message. Zero is no kind, so that a stream of zeros is refused at once.
type wireKind uint8

const (
	wireSend     wireKind = iota + 1 // offset 0, tag 0
	wireWrite                        // offset in the receiver's window, tag 0
	wireWriteImm                     // as write; tag is the immediate
	wireReadReq                      // offset in the receiver's window; tag counts requests
	wireReadResp                     // offset 0; length and tag of the oldest open request
	numWireKinds
)

var wireKindNames = [numWireKinds]string{"kind?", "send", "write", "write_imm", "read request", "read response"}

// String is the kind in words.
func (k wireKind) String() string {
	if k < numWireKinds {
		return wireKindNames[k]
	}
	return wireKindNames[0]
}

type header struct {
	off  uint64
	len  uint32
	tag  uint32
	kind wireKind
}

func (h header) put(b []byte) {
	_ = b[headerLen-1]
	binary.BigEndian.PutUint64(b, uint64(h.kind)<<offsetBits|h.off)
	binary.BigEndian.PutUint64(b[8:], uint64(h.len)<<32|uint64(h.tag))
}

func parseHeader(b []byte) header {
	_ = b[headerLen-1]
	w0, w1 := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	return header{
		off:  w0 & (1<<offsetBits - 1),
		len:  uint32(w1 >> 32),
		tag:  uint32(w1),
		kind: wireKind(w0 >> offsetBits),
	}
}

// The greeting is what each side says once before the first message. It has a
// fixed length, so that it can be read without taking bytes behind it.
//
//	magic 4 | version 1 | verdict 1 | hello length 1 | zero 1 | window 8 | read depth 4 | zero 4 | hello 16
const (
	greetingLen = 40
	greetingMax = 16 // bytes of hello

	wireVersion = 1
)

var magic = [4]byte{'r', 'p', 't', 'c'}

type verdict uint8

const (
	verdictAsk    verdict = iota + 1 // the dialler's
	verdictTake                      // the listener's: go on
	verdictRefuse                    // the listener's: it cannot serve this session
)

type greeting struct {
	version   uint8
	verdict   verdict
	window    uint64
	readDepth uint32 // read requests the speaker can hold
	hello     []byte
}

var (
	errMagic    = errors.New("not a greeting of the tcp transport")
	errGreeting = errors.New("malformed greeting")
)

// encode fails when hello is longer than greetingMax.
func (g *greeting) encode() ([greetingLen]byte, error) {
	var b [greetingLen]byte
	if len(g.hello) > greetingMax {
		return b, fmt.Errorf("hello of %d bytes, at most %d: %w", len(g.hello), greetingMax, rdma.ErrInvalid)
	}
	copy(b[:], magic[:])
	b[4], b[5], b[6] = g.version, uint8(g.verdict), uint8(len(g.hello))
	binary.BigEndian.PutUint64(b[8:], g.window)
	binary.BigEndian.PutUint32(b[16:], g.readDepth)
	copy(b[24:], g.hello)
	return b, nil
}

// parseGreeting looks at nothing but the version of another version, so that both sides can name the difference.
func parseGreeting(b *[greetingLen]byte) (greeting, error) {
	g := greeting{version: b[4], verdict: verdict(b[5])}
	if [4]byte(b[:4]) != magic {
		return g, fmt.Errorf("%w: %w", rdma.ErrProtocol, errMagic)
	}
	if g.version != wireVersion {
		return g, fmt.Errorf("%w: peer speaks version %d, this side %d", rdma.ErrProtocol, g.version, wireVersion)
	}
	g.window = binary.BigEndian.Uint64(b[8:])
	g.readDepth = binary.BigEndian.Uint32(b[16:])
	n := int(b[6])
	reserved := binary.BigEndian.Uint32(b[20:]) | uint32(b[7])
	if n > greetingMax || reserved != 0 {
		return g, fmt.Errorf("%w: %w", rdma.ErrProtocol, errGreeting)
	}
	// A refusal needs no figures.
	if g.verdict != verdictRefuse && (g.window == 0 || g.window >= 1<<offsetBits || g.readDepth == 0 ||
		g.readDepth > maxReadDepth) {
		return g, fmt.Errorf("%w: %w: window %d, read depth %d", rdma.ErrProtocol, errGreeting, g.window, g.readDepth)
	}
	g.hello = append([]byte(nil), b[24:24+n]...)
	return g, nil
}
