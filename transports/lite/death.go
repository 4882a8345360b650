package lite

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// lose ends a peer, once. When it returns, no request of ours goes to it, none of its requests touches our memory, and
// everything that waits for it fails. cause is kept for messages.
func (n *Node) lose(p *peer, cause error) {
	n.mu.Lock()
	if !p.admitted {
		// Its links belong to the goroutine that connects them, which drops them.
		p.earlyCause = cause
		n.mu.Unlock()
		return
	}
	if p.dead.Load() {
		n.mu.Unlock()
		return
	}
	p.cause = cause
	p.dead.Store(true)
	n.lost = append(n.lost, p)
	n.mu.Unlock()
	defer close(p.ended)
	for _, l := range p.links {
		// Taking the lock orders this behind every post before.
		l.mu.Lock()
		l.broken.Store(true)
		if len(l.backlog) > 0 {
			l.backlog = nil
			n.deferred.Add(-1)
		}
		l.mu.Unlock()
	}
	for _, l := range p.links {
		_ = l.qp.Close() // the peer sees the end of the connection; what is outstanding is flushed
		l.poll()
		n.sweep(l)
	}
	n.handles.lost(p.id)
	n.calls.failAll(n, p, int32(ErrPeerDead))
	for i := range n.most.Load() {
		if c := n.clients[i].Load(); c != nil {
			c.wake()
		}
	}
	if n.server != nil {
		n.server.locks.nodeLost(n, p.id)
	}
	if n.manager != nil {
		n.manager.nodeLost(p.id)
	}
}

// reap frees what lost peers had. Only Close calls it: until then a late poll may still read it.
func (n *Node) reap() {
	n.mu.Lock()
	gone := n.lost
	n.lost = nil
	n.mu.Unlock()
	for _, p := range gone {
		<-p.ended
		n.drop(p)
	}
}

// beatLoop writes a heartbeat to every peer, and loses those whose heartbeats stop.
func (n *Node) beatLoop() {
	t := time.NewTicker(n.cfg.Beat)
	defer t.Stop()
	most := max(int64(n.cfg.DeadAfter/n.cfg.Beat), 2)
	last := time.Now()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-t.C:
		}
		now := time.Now()
		late := now.Sub(last) > n.cfg.DeadAfter/2
		last = now
		for i := range n.peers {
			p := n.peers[i].Load()
			if p == nil || p.dead.Load() {
				continue
			}
			p.beat++
			if addr, ok := p.at(beatOf(n.id), wire.WordLen); ok {
				p.links[0].sendWord(addr, p.beat)
			}
			p.links[0].poll()
			if v, whole := n.word(beatOf(p.id)); whole && v != p.seen {
				p.seen = v
				p.silent.Store(0)
				continue
			}
			if late {
				continue // this node was the one that slept
			}
			if p.silent.Add(1) > most {
				n.lose(p, ErrTimeout)
			} else if p.links[0].qp.State() == rdma.QPErr {
				n.lose(p, ErrPeerDead)
			}
		}
		n.owners.refresh(n)
		if n.server != nil {
			n.server.locks.tick(n, now)
		}
	}
}

// silence is for how long a peer may give no sign of life and still be waited for at the end of something.
const silence = time.Second

// Answers reports whether a node is this one, or gave a sign of life within the last second or two beats.
func (n *Node) Answers(id int) bool {
	p, err := n.peerOf(id)
	return id == n.id || err == nil && time.Duration(p.silent.Load())*n.cfg.Beat <= max(silence, 2*n.cfg.Beat)
}

// Members are the nodes that are alive, this one included, in order.
func (n *Node) Members() []int {
	var ids []int
	for i := range n.peers {
		if p := n.peers[i].Load(); i == n.id || p != nil && !p.dead.Load() {
			ids = append(ids, i)
		}
	}
	return ids
}

// Dead is why a node is lost; nil while it is alive.
func (n *Node) Dead(id int) error {
	_, err := n.peerOf(id)
	if err == nil || id == n.id {
		return nil
	}
	if p := n.peers[id&(MaxNodes-1)].Load(); p != nil && p.dead.Load() {
		return opError("node", "", p.cause)
	}
	return err
}
