package lite

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// newPeer makes what exists once for a peer; id may be set later, before use.
func (n *Node) newPeer() (*peer, error) {
	p := &peer{ended: make(chan struct{})}
	var err error
	if p.ctlRing, err = n.alloc(controlRing); err != nil {
		return nil, err
	}
	if p.ctlHead, err = n.alloc(wire.WordLen); err != nil {
		n.free(p.ctlRing)
		return nil, err
	}
	wire.PutWord(n.bytes(p.ctlHead, wire.WordLen), 0)
	return p, nil
}

func (n *Node) newLink(p *peer, index int) (_ *link, err error) {
	d := n.cfg.Depth
	l := &link{node: n, peer: p, index: index, place: -1, depth: d, lkey: n.mr.LKey(),
		reposts: make([]rdma.RecvWR, 0, max(d/16, 1))}
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	if l.stage, err = n.alloc(d * (stageLen + 8)); err != nil {
		return nil, err
	}
	l.recvBufs = l.stage + uint64(d)*stageLen
	for i := range n.links {
		if n.links[i].CompareAndSwap(nil, l) {
			l.place = i
			break
		}
	}
	if l.place < 0 {
		return nil, fmt.Errorf("%d queue pairs: %w", len(n.links), ErrNoSpace)
	}
	if l.cq, err = n.dev.NewCQ(d + 8); err != nil {
		l.cq = nil
		return nil, err
	}
	l.qp, err = n.dev.NewQP(rdma.QPConfig{SendCQ: l.cq, RecvCQ: n.recvCQ, SendDepth: d, RecvDepth: d})
	if err != nil {
		l.qp = nil
		return nil, err
	}
	for i := range d {
		wr := l.receive(uint32(i))
		if _, err = l.qp.PostRecv([]rdma.RecvWR{wr}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// free undoes newLink. Completions that are still there go nowhere.
func (l *link) free() {
	if l.qp != nil {
		_ = l.qp.Close() // it only fails when it was closed
	}
	if l.cq != nil {
		for k, err := l.cq.Poll(l.wcs[:]); k > 0 && err == nil; k, err = l.cq.Poll(l.wcs[:]) {
			for i := range l.wcs[:k] {
				l.completed(&l.wcs[i])
			}
		}
		_ = l.cq.Close()
	}
	if l.place >= 0 {
		l.node.links[l.place].CompareAndSwap(l, nil)
	}
	if l.stage != 0 {
		l.node.free(l.stage)
	}
}

func (n *Node) greeting(p *peer, you uint8, link int) wire.Greeting {
	id := uint8(n.id)
	if n.id < 0 {
		id = wire.NoNode
	}
	return wire.Greeting{Node: id, You: you, Link: uint8(link), Links: uint8(n.cfg.Links), Sends: n.cfg.Sends,
		RKey: n.mr.RKey(), Base: n.base, Size: uint64(len(n.mem)), Token: n.token,
		Ring: uint32(p.ctlRing / ring.Granule), Head: uint32(p.ctlHead / ring.Granule)}
}

func (n *Node) param(private []byte) rdma.ConnParam {
	r := min(n.caps.MaxRDAtom, 16)
	p := rdma.ConnParam{PrivateData: private, IRD: r, ORD: r}
	if n.caps.Features.Has(rdma.FeatRNRRetry) {
		p.RNRRetry = 7
	}
	return p
}

func (n *Node) checkGreeting(g *wire.Greeting) error {
	switch {
	case subtle.ConstantTimeCompare(g.Token[:], n.token[:]) != 1:
		return fmt.Errorf("%w: another secret", wire.ErrPeer)
	case int(g.Links) != n.cfg.Links:
		return fmt.Errorf("%w: it has %d queue pairs a peer, this node %d", wire.ErrPeer, g.Links, n.cfg.Links)
	case g.Sends != n.cfg.Sends:
		return fmt.Errorf("%w: one of the two tells arrivals by sends", wire.ErrPeer)
	}
	return nil
}

// dial connects all links to the node at addr. id -1 is the manager, which assigns our number where we have none.
func (n *Node) dial(ctx context.Context, addr string, id int) (err error) {
	p, err := n.newPeer()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			n.drop(p)
		}
	}()
	p.id = id
	for i := range n.cfg.Links {
		l, err := n.newLink(p, i)
		if err != nil {
			return err
		}
		p.links = append(p.links, l)
		you := uint8(wire.NoNode)
		if id >= 0 {
			you = uint8(id)
		}
		g := n.greeting(p, you, i)
		got, err := l.qp.Connect(ctx, addr, n.param(g.Encode()))
		if err != nil {
			return err
		}
		a, err := wire.ParseGreeting(got.PrivateData)
		if err == nil {
			err = n.checkGreeting(&a)
		}
		if err == nil && (int(a.Link) != i || int(a.Node) >= MaxNodes || int(a.You) >= MaxNodes || id >= 0 &&
			int(a.Node) != id) {
			err = fmt.Errorf("%w: it answers as node %d, queue pair %d", wire.ErrPeer, a.Node, a.Link)
		}
		if err != nil {
			return err
		}
		if n.id < 0 {
			n.id = int(a.You)
		}
		id = int(a.Node)
		p.id = id
		p.rkey, p.base, p.size = a.RKey, a.Base, a.Size
		if i == 0 {
			n.clearMail(p.id)
			if err := n.controlRings(p, &a); err != nil {
				return err
			}
		}
	}
	if err := n.admit(p); err != nil {
		return err
	}
	// The initiator writes first: iWARP holds the other side's words back until then (RFC 5044 §7.1.2).
	for _, l := range p.links {
		addr, _ := p.at(beatOf(n.id), wire.WordLen)
		l.sendWord(addr, 0)
	}
	return nil
}

// clearMail empties a mailbox, which may still hold words of an earlier node of that number.
func (n *Node) clearMail(id int) {
	wire.PutWord(n.bytes(beatOf(id), wire.WordLen), 0)
	for i := range MaxLinks {
		wire.PutWord(n.bytes(creditOf(id, i), wire.WordLen), 0)
	}
}

// controlRings opens the nodes' own port in both directions.
func (n *Node) controlRings(p *peer, a *wire.Greeting) error {
	ringAt, ok1 := p.at(uint64(a.Ring)*ring.Granule, controlRing)
	headAt, ok2 := p.at(uint64(a.Head)*ring.Granule, wire.WordLen)
	if !ok1 || !ok2 || p.size < mailEnd {
		return fmt.Errorf("%w: ring outside its arena", wire.ErrPeer)
	}
	s, err := ring.NewSender(controlRing)
	if err != nil {
		return err
	}
	r, err := ring.NewReceiver(controlRing)
	if err != nil {
		return err
	}
	p.out[wire.ControlPort] = &outRing{ring: s, at: ringAt, head: p.ctlHead,
		maxMessage: ring.MaxRecord(controlRing) - wire.RequestLen}
	p.in[wire.ControlPort] = &inRing{ring: r, off: p.ctlRing, size: controlRing, headAt: headAt}
	return nil
}

// admit makes a peer reachable once all its links are connected.
func (n *Node) admit(p *peer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return ErrClosed
	}
	if old := n.peers[p.id].Load(); old != nil && !old.dead.Load() {
		return fmt.Errorf("%w: node %d is there already", wire.ErrPeer, p.id)
	}
	if p.earlyCause != nil {
		return fmt.Errorf("node %d went while it came: %w", p.id, p.earlyCause)
	}
	p.admitted = true
	n.peers[p.id].Store(p)
	return nil
}

// drop frees a peer that never was reachable, or is not any more.
func (n *Node) drop(p *peer) {
	for _, l := range p.links {
		l.free()
	}
	p.links = nil
	n.freeRings(p)
}

func (n *Node) acceptLoop() {
	young := map[uint8]*peer{} // peers whose links are not all there
	for {
		req, err := n.lis.Accept(n.ctx)
		if err != nil {
			for _, p := range young {
				n.drop(p)
			}
			return
		}
		for id, p := range young {
			if time.Since(p.created) > n.cfg.DeadAfter {
				n.drop(p)
				delete(young, id)
			}
		}
		if err := n.answer(req, young); err != nil {
			// A connection that was accepted is not rejected again: that only fails.
			ctx, cancel := context.WithTimeout(n.ctx, time.Second)
			_ = req.Reject(ctx, nil)
			cancel()
		}
	}
}

func (n *Node) answer(req rdma.ConnRequest, young map[uint8]*peer) (err error) {
	defer onepeer.Recover(func(fault error) { err = fault })
	g, err := wire.ParseGreeting(req.Param().PrivateData)
	if err == nil {
		err = n.checkGreeting(&g)
	}
	if err != nil {
		return err
	}
	id := g.Node
	if id == wire.NoNode {
		if n.manager == nil || g.Link != 0 {
			return fmt.Errorf("%w: only the manager gives numbers", wire.ErrPeer)
		}
		if id, err = n.manager.number(); err != nil {
			return err
		}
	} else if int(id) >= MaxNodes || g.You != uint8(n.id) && !(g.You == wire.NoNode && n.manager != nil) ||
		int(id) == n.id {
		return fmt.Errorf("%w: node %d asks for node %d", wire.ErrPeer, id, g.You)
	}
	p := young[id]
	if g.Link == 0 {
		if p != nil {
			n.drop(p)
		}
		if p, err = n.newPeer(); err != nil {
			return err
		}
		p.id, p.created = int(id), time.Now()
		p.rkey, p.base, p.size = g.RKey, g.Base, g.Size
		young[id] = p
		if old := n.peers[id].Load(); old == nil || old.dead.Load() {
			n.clearMail(p.id)
		}
		if err := n.controlRings(p, &g); err != nil {
			return err
		}
	}
	if p == nil || int(g.Link) != len(p.links) || g.RKey != p.rkey || g.Base != p.base || g.Size != p.size {
		return errors.New("queue pairs out of order")
	}
	l, err := n.newLink(p, int(g.Link))
	if err != nil {
		return err
	}
	last := len(p.links)+1 == n.cfg.Links
	p.links = append(p.links, l)
	if last {
		// Reachable before the answer: the peer may write at once.
		delete(young, id)
		if err := n.admit(p); err != nil {
			n.drop(p)
			return err
		}
	}
	a := n.greeting(p, id, int(g.Link))
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.DeadAfter)
	defer cancel()
	if _, err := req.Accept(ctx, l.qp, n.param(a.Encode())); err != nil {
		if last {
			n.lose(p, err)
		} else {
			delete(young, id)
			n.drop(p)
		}
		return err
	}
	return nil
}
