package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// GreetingLen fits the 56 bytes that rdma_cm leaves of the InfiniBand REQ
// (rdma_connect(3)).
//
//	magic 4 | version 1 | node 1 | you 1 | link 1 | links 1 | form 1 | zero 2 |
//	rkey 4 | base 8 | size 8 | token 8 | ring 4 | head 4 | zero 4
const GreetingLen = 52

// NoNode is the number of a node that has none yet.
const NoNode = 0xff

const version = 1

var magic = [4]byte{'L', 'I', 'T', 'E'}

// Greeting is what either side states when a queue pair is connected.
type Greeting struct {
	Node  uint8   // the sender; NoNode asks for a number
	You   uint8   // the receiver; in an answer to NoNode, the number
	Link  uint8   // which of the queue pairs to that node this is
	Links uint8   // how many there are
	Sends bool    // arrivals are notified by sends, not by immediate data
	RKey  uint32  // of the arena
	Base  uint64  // address of the arena
	Size  uint64  // bytes
	Token [8]byte // of the cluster
	Ring  uint32  // of the peer's control messages, offset in the arena in granules
	Head  uint32  // where the peer writes the head of our control messages, likewise
}

// TokenOf is what nodes show instead of the cluster's secret. It keeps unknown peers and
// mistakes out; who listens on the wire can repeat it.
func TokenOf(secret string) (t [8]byte) {
	sum := sha256.Sum256([]byte("rdmaperf lite " + secret))
	copy(t[:], sum[:])
	return t
}

// Encode is the greeting as private data.
func (g *Greeting) Encode() []byte {
	b := make([]byte, GreetingLen)
	copy(b, magic[:])
	b[4], b[5], b[6], b[7], b[8] = version, g.Node, g.You, g.Link, g.Links
	if g.Sends {
		b[9] = 1
	}
	binary.BigEndian.PutUint32(b[12:], g.RKey)
	binary.BigEndian.PutUint64(b[16:], g.Base)
	binary.BigEndian.PutUint64(b[24:], g.Size)
	copy(b[32:], g.Token[:])
	binary.BigEndian.PutUint32(b[40:], g.Ring)
	binary.BigEndian.PutUint32(b[44:], g.Head)
	return b
}

// ParseGreeting takes more bytes than it needs: some devices pad private data with
// zeros (rdma_get_cm_event(3)).
func ParseGreeting(b []byte) (g Greeting, err error) {
	if len(b) < GreetingLen || [4]byte(b[:4]) != magic {
		return g, fmt.Errorf("%w: private data is not of a lite node", ErrPeer)
	}
	if b[4] != version {
		return g, fmt.Errorf("%w: it speaks version %d, this side %d", ErrPeer, b[4], version)
	}
	g = Greeting{
		Node: b[5], You: b[6], Link: b[7], Links: b[8], Sends: b[9] == 1,
		RKey:  binary.BigEndian.Uint32(b[12:]),
		Base:  binary.BigEndian.Uint64(b[16:]),
		Size:  binary.BigEndian.Uint64(b[24:]),
		Token: [8]byte(b[32:40]),
		Ring:  binary.BigEndian.Uint32(b[40:]),
		Head:  binary.BigEndian.Uint32(b[44:]),
	}
	// An arena that wraps would make every bounds check meaningless.
	if b[9] > 1 || b[10]|b[11] != 0 || g.Size == 0 || g.Base+g.Size < g.Base || g.Links == 0 || g.Link >= g.Links {
		return Greeting{}, fmt.Errorf("%w: malformed greeting", ErrPeer)
	}
	return g, nil
}
