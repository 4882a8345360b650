package lite

import (
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func (s *nodeServer) alloc(r *Request, q *allocRequest) (a allocAnswer, err error) {
	if r.From != 0 {
		return a, ErrPermission // only the manager places regions
	}
	n := s.node
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	for _, size := range q.Sizes {
		off, err := n.space.Alloc(size)
		if err != nil {
			for _, off := range a.Offs {
				_ = n.space.Free(off)
				delete(n.owned[q.Region], off)
			}
			return allocAnswer{}, ErrNoSpace
		}
		if n.owned[q.Region] == nil {
			n.owned[q.Region] = map[uint64]uint64{}
		}
		n.owned[q.Region][off] = size
		n.zero(off, size)
		a.Offs = append(a.Offs, off)
	}
	return a, nil
}

// zero makes bytes of the arena zeros; spaceMu is held. What was never handed out is zeros already (mmap(2)).
func (n *Node) zero(off, size uint64) {
	if off < n.fresh {
		clear(n.bytes(off, int(min(size, n.fresh-off))))
	}
	n.fresh = max(n.fresh, off+size)
}

func (s *nodeServer) free(r *Request, q *freeRequest) (empty, error) {
	if r.From != 0 {
		return empty{}, ErrPermission
	}
	n := s.node
	s.locks.forget(q.Region)
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	for _, off := range q.Offs {
		if _, ok := n.owned[q.Region][off]; !ok {
			continue
		}
		delete(n.owned[q.Region], off)
		if !n.published[q.Region] {
			_ = n.space.Free(off)
		}
	}
	if len(n.owned[q.Region]) == 0 {
		delete(n.owned, q.Region)
		delete(n.published, q.Region)
	}
	return empty{}, nil
}

func (n *Node) owns(region, off, size uint64) bool {
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	for at, len := range n.owned[region] {
		if off >= at && off-at <= len && size <= len-(off-at) {
			return true
		}
	}
	return false
}

// kill ends the handles of a region and answers when nothing touches its memory any more.
func (s *nodeServer) kill(r *Request, q *regionRequest) (empty, error) {
	if r.From != 0 {
		return empty{}, ErrPermission
	}
	n := s.node
	list := n.handles.kill(q.Region, q.Why)
	end := time.Now().Add(n.cfg.Timeout / 2)
	for turn := 0; ; turn++ {
		busy := false
		for _, e := range list {
			busy = busy || e.inflight.Load() > 0
		}
		if !busy {
			return empty{}, nil
		}
		if turn%1024 == 1023 && (time.Now().After(end) || n.ctx.Err() != nil) {
			return empty{}, ErrFail
		}
		// The client that posted them may not be polling.
		n.pollLinks()
		runtime.Gosched()
	}
}

type fillRequest struct {
	Region, Off, Len uint64
	Byte             byte
}

func (s *nodeServer) fill(_ *Request, q *fillRequest) (empty, error) {
	n := s.node
	if !n.owns(q.Region, q.Off, q.Len) {
		return empty{}, ErrBounds
	}
	b := n.bytes(q.Off, int(q.Len))
	if q.Byte == 0 {
		clear(b)
		return empty{}, nil
	}
	for i := range b {
		b[i] = q.Byte
	}
	return empty{}, nil
}

type copyRequest struct {
	Region, Off, Len uint64 // what lies here
	Node             int    // where it goes
	To               uint64
	Into             uint64 // the region there, checked when it is this node
}

func (s *nodeServer) copy(_ *Request, q *copyRequest) (empty, error) {
	n := s.node
	if !n.owns(q.Region, q.Off, q.Len) {
		return empty{}, ErrBounds
	}
	if q.Node != n.id {
		return empty{}, s.work.put(q.Node, q.To, q.Off, q.Len)
	}
	if q.Into != 0 && !n.owns(q.Into, q.To, q.Len) || q.To > uint64(len(n.mem)) || q.Len > uint64(len(n.mem))-q.To ||
		q.To < mailEnd {
		return empty{}, ErrBounds
	}
	copy(n.bytes(q.To, int(q.Len)), n.bytes(q.Off, int(q.Len))) // memmove(3)
	return empty{}, nil
}

// put writes bytes of this node's arena into another's, without a handle, and returns when they have arrived: where
// completions are local, a read behind the write shows it (RFC 5040 §5.5).
func (c *Client) put(node int, to, local, size uint64) error {
	p, err := c.node.peerOf(node)
	if err != nil {
		return err
	}
	at, ok := p.at(to, int(size))
	if !ok || to < mailEnd {
		return ErrBounds
	}
	ops := []Op{{Kind: OpWrite, Local: local, Len: uint32(size)}}
	if c.node.caps.Completion == rdma.CompletionLocal && size > 0 {
		ops = append(ops, Op{Kind: OpRead, Local: c.word, Len: 1})
	}
	for i := range ops {
		if err := c.runUnchecked(&ops[i], node, at-p.base); err != nil {
			return err
		}
	}
	return nil
}

// runUnchecked is run without a handle.
func (c *Client) runUnchecked(o *Op, node int, at uint64) error {
	s := c.begin(c.tail, &entry{}, o, 0)
	s.entry.inflight.Store(1)
	for w := (waiter{}); ; {
		err := c.postRemote(o, s, node, at, o.Local, o.Len)
		if err == nil {
			c.tail++
			c.partDone(s)
			return c.waitNewest(o.Len > longMessage)
		}
		if err != rdma.ErrQueueFull {
			return err
		}
		c.pollLinks(1 << node)
		if !w.waitPolling(c) {
			return ErrTimeout
		}
	}
}
