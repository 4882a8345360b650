package lite

import (
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// batchMost is how many work requests the device gets at once, as many as from rdmaperf's loops.
const batchMost = 64

// postRun posts the operations at the front of ops that lie whole at one other node, in one call to the device. 0
// without an error: the first one goes alone. Unsignaled ones end with the next completion of the run, as the queue
// pair carries them out in order (IBTA 10.7.3.1). The last of a run always has one.
func (c *Client) postRun(ops []Op) (n int, err error) {
	nd := c.node
	if len(ops) < 2 || nd.cfg.QoS == QoSSWPri { // each operation is paced by itself
		return 0, nil
	}
	most := min(len(ops), batchMost, c.cfg.Depth-int(c.tail-c.head))
	if most == 0 {
		return 0, rdma.ErrQueueFull
	}
	if c.batch == nil {
		c.batch = new([batchMost]rdma.SendWR)
	}
	var p *peer
	var l *link
	unsignaled := uint32(0)
	for n < most && err == nil {
		o := &ops[n]
		var e *entry
		if e, err = c.enter(o); err != nil {
			break
		}
		at, to, whole := e.whole(o.Off, o.Len)
		if !whole || to == nd.id || p != nil && to != p.id {
			e.leave()
			break
		}
		if p == nil {
			if p, err = nd.peerOf(to); err == nil {
				// Before any slot is taken: a slot whose operation failed is not used for that queue pair again.
				if l = c.link(p); l.broken.Load() {
					err = ErrPeerDead
				}
			}
			if err != nil {
				e.leave()
				return 0, err
			}
		}
		place := (c.tail + uint32(n)) & uint32(len(c.ops)-1)
		s := c.begin(place, e, o, 1<<to)
		s.behind = unsignaled
		s.runs.Store(l)
		wr := &c.batch[n]
		wr.Op, wr.Flags, wr.NumSGE, wr.Priority = opKinds[o.Kind].op, fenced(o.Fence), 1, c.cfg.Priority
		if unsignaled++; !o.Unsignaled {
			wr.Flags |= rdma.Signaled
			unsignaled = 0
		}
		wr.ID = idRun<<idKindShift | uint64(c.num)<<idClientShift | uint64(place)
		wr.RemoteAddr, wr.CompareAdd, wr.Swap = p.base+at, o.Add, o.Swap
		wr.SGE[0] = rdma.SGE{Addr: nd.base + o.Local, Len: o.Len, LKey: l.lkey}
		n++
	}
	if n == 0 {
		return 0, err
	}
	k, e := l.postRun(c.batch[:n])
	for i := k; i < n; i++ {
		s := &c.ops[(c.tail+uint32(i))&uint32(len(c.ops)-1)]
		if s.claim(l) { // else the end of the peer was faster
			s.left.Store(0)
			s.entry.leave()
		}
	}
	c.tail += uint32(k)
	nd.counts.pieces.Add(uint64(k))
	if k < n {
		err = e
	}
	return k, err
}

// whole is where a range lies, when it lies in one piece. Empty ranges do not: nothing moves.
func (e *entry) whole(off uint64, size uint32) (at uint64, node int, ok bool) {
	if size == 0 {
		return 0, 0, false
	}
	p, in := e.find(off)
	return p.Off + in, p.Node, uint64(size) <= p.Len-in
}

// postRun hands wrs to the device, as far as there is room beside the node's own messages, or the reason for fewer.
func (l *link) postRun(wrs []rdma.SendWR) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken.Load() {
		return 0, ErrPeerDead
	}
	room := l.depth - l.depth/8 - int(l.inUse.Load())
	if room <= 0 {
		return 0, rdma.ErrQueueFull
	}
	k := min(room, len(wrs))
	wrs[k-1].Flags |= rdma.Signaled
	unsignaled := l.unsignaled
	for i := range wrs[:k] {
		wr := &wrs[i]
		if unsignaled+1 >= l.depth/4 {
			wr.Flags |= rdma.Signaled // as in post
		}
		unsignaled++
		wr.ID |= uint64(unsignaled) << idCoverShift
		wr.RKey = l.peer.rkey
		if wr.Flags&rdma.Signaled != 0 {
			unsignaled = 0
		}
	}
	l.inUse.Add(int32(k)) // before the post: a completion may be taken meanwhile
	n, err = l.qp.PostSend(wrs[:k])
	l.seq += uint64(n)
	switch {
	case n == k:
		if l.unsignaled = unsignaled; k < len(wrs) {
			err = rdma.ErrQueueFull
		}
		return n, err
	case n > 0 && wrs[n-1].Flags&rdma.Signaled == 0:
		// The last ones would never complete. By our count the queue has room, so the queue pair has failed.
		l.broken.Store(true)
		go l.node.lose(l.peer, ErrPeerDead)
		err = ErrPeerDead
	}
	l.inUse.Add(int32(n - k))
	for i := range wrs[:n] {
		if l.unsignaled++; wrs[i].Flags&rdma.Signaled != 0 {
			l.unsignaled = 0
		}
	}
	if err == nil {
		err = rdma.ErrQueueFull
	} else if err != rdma.ErrQueueFull {
		err = ErrPeerDead
	}
	return n, err
}

// claim is true for who completes an operation of a run first: a completion, or the end of the queue pair.
func (s *op) claim(l *link) bool { return s.runs.CompareAndSwap(l, nil) }

// completeRun takes a completion of a run, and with it the operations in front that have none.
func (c *Client) completeRun(l *link, i uint32, st rdma.Status) {
	mask := uint32(len(c.ops) - 1)
	s := &c.ops[i&mask]
	behind := s.behind
	if !s.claim(l) {
		return
	}
	for k := behind; k > 0; k-- {
		// In the order of the posts. Those that failed are claimed already.
		if q := &c.ops[(i-k)&mask]; q.claim(l) {
			c.partDone(q)
		}
	}
	if st != rdma.StatusSuccess {
		s.bad.CompareAndSwap(0, uint32(st))
	}
	c.partDone(s)
}

// sweep completes what a closed queue pair will not: unsignaled operations without a later completion.
func (n *Node) sweep(l *link) {
	for i := range n.most.Load() {
		c := n.clients[i].Load()
		if c == nil {
			continue
		}
		for k := range c.ops {
			if s := &c.ops[k]; s.claim(l) {
				s.bad.CompareAndSwap(0, uint32(rdma.StatusWRFlushErr))
				c.partDone(s)
			}
		}
	}
}
