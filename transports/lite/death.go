package lite

import (
	"context"
	"slices"
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

type member struct {
	ID   int
	Addr string
}

type membersRequest struct{ Addr string }

type membersAnswer struct{ Members []member }

// join connects to the manager, which assigns a number, and to every node that joined before.
func (n *Node) join(ctx context.Context) error {
	n.id = -1
	if n.manager != nil {
		n.id = 0
	}
	n.wg.Go(n.pollLoop)
	n.wg.Go(n.acceptLoop)
	n.wg.Go(n.beatLoop)
	if n.manager != nil {
		return nil
	}
	if err := n.dial(ctx, n.cfg.Manager, -1); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		n.ctlMu.Lock()
		most := n.ctl.cfg.Timeout
		n.ctl.cfg.Timeout = min(most, max(time.Until(end), n.cfg.Beat))
		n.ctlMu.Unlock()
		defer func() {
			n.ctlMu.Lock()
			n.ctl.cfg.Timeout = most
			n.ctlMu.Unlock()
		}()
	}
	var a membersAnswer
	if err := n.ctl.control(0, opMembers, membersRequest{n.lis.Addr()}, &a); err != nil {
		return err
	}
	for _, m := range a.Members {
		if m.ID == 0 || m.ID == n.id {
			continue
		}
		if err := n.dialMember(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// dialMember dials a member, unless it leaves meanwhile.
func (n *Node) dialMember(ctx context.Context, m member) error {
	end := time.Now().Add(n.cfg.Timeout)
	for {
		err := n.dial(ctx, m.Addr, m.ID)
		if err == nil {
			return nil
		}
		var now membersAnswer
		if err := n.ctl.control(0, opMembers, membersRequest{n.lis.Addr()}, &now); err != nil {
			return err
		}
		switch {
		case !slices.Contains(now.Members, m):
			return nil
		case time.Now().After(end) || ctx.Err() != nil:
			return &rdma.OpError{Op: "connect to node", Object: m.Addr, Err: err}
		}
		time.Sleep(n.cfg.Beat)
	}
}

// Await waits until count nodes are members, this one included.
func (n *Node) Await(ctx context.Context, count int) error {
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for len(n.Members()) < count {
		select {
		case <-t.C:
		case <-ctx.Done():
			return opError("await", "members", ctx.Err())
		case <-n.ctx.Done():
			return opError("await", "members", ErrClosed)
		}
	}
	return nil
}
