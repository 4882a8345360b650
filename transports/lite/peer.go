package lite

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
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

// outRing is a ring at a peer that this node writes.
type outRing struct {
	mu         sync.Mutex
	ring       ring.Sender
	at         uint64 // address of the ring in the peer's arena
	head       uint64 // own arena: where the peer writes its head
	maxMessage uint64 // payload bytes of one message
}

// send writes one message into the ring. rdma.ErrQueueFull, errNoCredit and ErrPortFull change nothing; room may come.
func (o *outRing) send(l *link, port int, kind uint32, r *wire.Request, body []byte, flags rdma.SendFlags,
	id uint64) error {
	if uint64(len(body)) > o.maxMessage {
		return ErrTooBig
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	size := uint64(wire.RequestLen + len(body))
	sp, ok := o.ring.Reserve(size)
	if !ok {
		// A torn word is old: the next read finds it whole.
		if head, whole := l.node.word(o.head); whole && o.ring.Head(head) != nil {
			return ErrPeerDead // it claims to have read what was not written
		}
		if sp, ok = o.ring.Reserve(size); !ok {
			return ErrPortFull
		}
	}
	var head [wire.RequestLen]byte
	r.Start, r.Len = sp.Start, uint32(len(body))
	r.Put(head[:])
	l.mu.Lock()
	err := l.message(o.at+uint64(sp.Off), wire.Imm(kind, port, sp.Off), head[:], body, flags, id)
	l.mu.Unlock()
	if err != nil {
		o.ring.Undo(sp)
	}
	return err
}

// inRing is a ring here that a peer writes.
type inRing struct {
	mu     sync.Mutex
	ring   *ring.Receiver
	off    uint64 // own arena
	size   uint64
	headAt uint64 // address in the peer's arena
}

// take checks the record at offset off and returns its header and payload.
func (i *inRing) take(n *Node, off uint32) (r wire.Request, body []byte, err error) {
	if uint64(off) >= i.size {
		return r, nil, ring.ErrPeer
	}
	b := n.bytes(i.off, int(i.size))[off:]
	if r, err = wire.GetRequest(b); err != nil {
		return r, nil, err
	}
	i.mu.Lock()
	err = i.ring.Arrived(r.Start, off, uint64(wire.RequestLen)+uint64(r.Len))
	i.mu.Unlock()
	return r, b[wire.RequestLen : wire.RequestLen+r.Len : wire.RequestLen+r.Len], err
}

// release frees a record's room and, once a quarter of the ring, notifies the peer, over one link: heads stay in order.
func (i *inRing) release(p *peer, start uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ring.Release(start) && len(p.links) > 0 { // a lost peer has none
		l := p.links[0]
		l.node.counts.heads.Add(1)
		l.sendWord(i.headAt, i.ring.Head())
	}
}

func (n *Node) freeRings(p *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.in {
		if r := p.in[i]; r != nil && i != wire.ControlPort {
			n.free(r.off)
		}
		if r := p.out[i]; r != nil && i != wire.ControlPort {
			n.free(r.head)
		}
		p.in[i], p.out[i] = nil, nil
	}
	if p.ctlRing != 0 {
		n.free(p.ctlRing)
		n.free(p.ctlHead)
		p.ctlRing = 0
	}
}
