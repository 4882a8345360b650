package lite

import (
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
