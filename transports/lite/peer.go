package lite

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
)

type peer struct {
	id   int
	rkey uint32
	base uint64 // of its arena
	size uint64

	links      []*link       // all of them once joined
	ended      chan struct{} // closed when everything of a lost peer has ended
	dead       atomic.Bool
	admitted   bool  // guarded by Node.mu: all links are there, and lose may end it
	earlyCause error // guarded by Node.mu: why it was to end before that

	cause error // why, before dead is set

	opening sync.Mutex // one client at a time asks for a ring

	mu  sync.Mutex
	out [wire.Ports]*outRing // rings at that node that this one writes
	in  [wire.Ports]*inRing  // rings here that it writes; read under pollMu too

	ctlRing uint64 // own arena: the ring for its control messages
	ctlHead uint64 // own arena: where it writes the head of ours

	beat, seen uint64       // own sign of life; the last of the peer's
	silent     atomic.Int64 // beats without one
	created    time.Time
}

// at is the address of offset off of the peer's arena; ok only inside it.
func (p *peer) at(off uint64, n int) (uint64, bool) {
	return p.base + off, off <= p.size && uint64(n) <= p.size-off
}

func (p *peer) holds(addr uint64, n uint64) bool {
	return addr >= p.base && addr-p.base <= p.size && n <= p.size-(addr-p.base)
}

func (p *peer) ring(port int) *outRing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out[port]
}

func (n *Node) peerOf(id int) (*peer, error) {
	if id < 0 || id >= MaxNodes {
		return nil, ErrNoMember
	}
	p := n.peers[id].Load()
	switch {
	case p == nil:
		return nil, ErrNoMember
	case p.dead.Load():
		return nil, ErrPeerDead
	}
	return p, nil
}

// Every arena starts with a mailbox for each possible peer, which writes checked words there: its sign of life, and for
// each queue pair how many receives it has posted again.
const (
	mailLen   = 64 + MaxLinks*wire.WordLen
	mailEnd   = MaxNodes * mailLen
	beatAt    = 0
	creditsAt = 64

	stageLen = 256 // bytes beside each entry of a send queue, for headers, words and short messages until they are sent

	controlRing  = 256 << 10 // of the nodes' own port, bytes
	controlReply = 96 << 10  // longest answer of it
)

func beatOf(node int) uint64         { return uint64(node*mailLen + beatAt) }
func creditOf(node, link int) uint64 { return uint64(node*mailLen + creditsAt + link*wire.WordLen) }

func (n *Node) word(off uint64) (uint64, bool) { return wire.Word(n.mem[off : off+wire.WordLen]) }
