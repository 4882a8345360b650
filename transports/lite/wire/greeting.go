// Package wire encodes what the nodes of a LITE cluster send to each other: private data, immediate data, headers in
// rings and reply buffers, and words that one side writes into the other's memory. Everything is big-endian except the
// checked words. Parsers take any bytes, never panic, and fail with an error that wraps [ErrPeer].
package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
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
