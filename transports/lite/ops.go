package lite

import (
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// OpKind is a one-sided operation.
type OpKind uint8

const (
	OpWrite OpKind = iota
	OpRead
	OpFetchAdd // 8 bytes
	OpCmpSwap  // 8 bytes
	numOpKinds
	OpMessage OpKind = numOpKinds // of Done alone: what PostMessage posted
)

var opKinds = [numOpKinds]struct {
	perm   Perm
	op     rdma.Opcode
	atomic bool
}{
	OpWrite:    {PermWrite, rdma.OpWrite, false},
	OpRead:     {PermRead, rdma.OpRead, false},
	OpFetchAdd: {PermAtomic, rdma.OpFetchAdd, true},
	OpCmpSwap:  {PermAtomic, rdma.OpCmpSwap, true},
}

// Op is one operation on a region, without pointers.
type Op struct {
	Handle     Handle
	Off        uint64 // in the region, bytes; atomics: a multiple of 8
	Local      uint64 // in the arena of the node, bytes (Client.Offset)
	Add        uint64 // fetch_add: addend; cmp_swap: expected
	Swap       uint64 // cmp_swap: new value
	Len        uint32 // bytes; atomics: 8
	Slot       uint32 // the caller's; comes back in Done
	Kind       OpKind
	Unsignaled bool // no Done on success
	Fence      bool // behind all earlier reads of the client to that node; for devices with rdma.FeatFence
}

// Done is one finished operation.
type Done struct {
	Slot   uint32
	Len    uint32
	Kind   OpKind
	Status rdma.Status // of the first part that failed
}

// Offset is where b lies in the arena; ErrMemory when it does not.
func (c *Client) Offset(b []byte) (uint64, error) {
	off, ok := c.node.inside(b)
	if !ok {
		return 0, ErrMemory
	}
	return off, nil
}

// Post starts operations in order. n < len(ops) comes with the reason: rdma.ErrQueueFull means poll and try the rest
// again. The local bytes are the tier's until the operation is polled.
func (c *Client) Post(ops []Op) (n int, err error) {
	for n < len(ops) && err == nil {
		var k int
		if k, err = c.postRun(ops[n:]); k == 0 && err == nil {
			if err = c.post(&ops[n]); err == nil {
				k = 1
			}
		}
		n += k
	}
	return n, err
}

// PostMessage starts a one-way message of size bytes at local in the arena, the tier's until Poll returns OpMessage.
// tag, below 1<<24, travels with it. rdma.ErrQueueFull: there is no room here or at the peer yet. The first message to
// a port waits for its ring.
func (c *Client) PostMessage(node, port int, tag uint32, local uint64, size, slot uint32, unsignaled,
	fence bool) error {
	n := c.node
	if int(c.tail-c.head) >= c.cfg.Depth {
		return rdma.ErrQueueFull
	}
	if local > uint64(len(n.mem)) || uint64(size) > uint64(len(n.mem))-local {
		return ErrMemory
	}
	if port < 0 || port >= wire.ControlPort || tag>>24 != 0 {
		return ErrNoPort
	}
	p, out, err := c.ringAt(node, port)
	if err != nil {
		return err
	}
	c.begin(c.tail, &unhandled, &Op{Slot: slot, Len: size, Kind: OpMessage, Unsignaled: unsignaled}, 1<<node)
	unhandled.inflight.Add(1)
	l := c.link(p)
	id := idOp<<idKindShift | uint64(c.num)<<idClientShift | uint64(c.tail)&uint64(len(c.ops)-1)
	r := wire.Request{Slot: tag, Priority: c.cfg.Priority}
	if err := out.send(l, port, wire.ImmOneWay, &r, n.bytes(local, int(size)), rdma.Signaled|fenced(fence),
		id); err != nil {
		unhandled.leave()
		if err == ErrPortFull || err == errNoCredit || err == rdma.ErrQueueFull {
			l.poll()
			err = rdma.ErrQueueFull
		}
		return err
	}
	c.tail++
	return nil
}

func fenced(yes bool) rdma.SendFlags {
	if yes {
		return rdma.Fence
	}
	return 0
}

// unhandled is what operations without a handle hold.
var unhandled entry

// begin is the place of an operation, with one part left.
func (c *Client) begin(place uint32, e *entry, o *Op, nodes uint32) *op {
	s := &c.ops[place&uint32(len(c.ops)-1)]
	s.entry, s.slot, s.len, s.kind, s.unsignaled, s.nodes, s.class = e, o.Slot, o.Len, o.Kind, o.Unsignaled, nodes,
		classNone
	s.bad.Store(0)
	s.left.Store(1)
	return s
}

// enter checks one operation, and finds and holds what its handle stands for.
func (c *Client) enter(o *Op) (*entry, error) {
	if o.Kind >= numOpKinds {
		return nil, rdma.ErrNotSupported
	}
	k := &opKinds[o.Kind]
	n := c.node
	size := uint64(o.Len)
	if o.Local > uint64(len(n.mem)) || size > uint64(len(n.mem))-o.Local {
		return nil, ErrMemory
	}
	if k.atomic {
		if !n.caps.Ops.Has(k.op) {
			return nil, rdma.ErrNotSupported
		}
		if size != 8 || o.Off&7 != 0 {
			return nil, ErrBounds
		}
	}
	return n.handles.enter(o.Handle, k.perm, o.Off, size)
}

// post posts the parts of one operation, all or none: when some are posted, the others wait for room.
func (c *Client) post(o *Op) error {
	if int(c.tail-c.head) >= c.cfg.Depth {
		return rdma.ErrQueueFull
	}
	n := c.node
	paced := n.cfg.QoS == QoSSWPri
	if paced && c.cfg.Priority == 0 && !c.mayPost() {
		return rdma.ErrQueueFull
	}
	e, err := c.enter(o)
	if err != nil {
		return err
	}
	// One part is held here, so that the operation does not end meanwhile.
	s := c.begin(c.tail, e, o, 0)
	if paced {
		s.posted, s.class = n.now(), n.load.begin(c.cfg.Priority > 0)
	}
	err = c.parts(o, s, e)
	if err != nil && s.nodes == 0 {
		s.left.Store(0)
		n.load.end(s.posted, s.posted, s.class)
		e.leave()
		return err
	}
	if err != nil {
		s.bad.CompareAndSwap(0, uint32(rdma.StatusRetryExcErr))
	}
	c.tail++
	c.partDone(s)
	return nil
}

func (c *Client) parts(o *Op, s *op, e *entry) error {
	off, local, left := o.Off, o.Local, uint64(o.Len)
	for left > 0 {
		p, at := e.find(off)
		size := min(left, p.Len-at)
		var err error
		if p.Node == c.node.id {
			c.postLocal(o, p.Off+at, local, size)
		} else {
			err = c.postRemote(o, s, p.Node, p.Off+at, local, uint32(size))
		}
		if err != nil {
			return err
		}
		off, local, left = off+size, local+size, left-size
	}
	return nil
}

func (c *Client) postRemote(o *Op, s *op, node int, at, local uint64, size uint32) error {
	n := c.node
	p, err := n.peerOf(node)
	if err != nil {
		return err
	}
	l := c.link(p)
	wr := &c.wr
	wr.Op, wr.Flags, wr.NumSGE, wr.Priority = opKinds[o.Kind].op, rdma.Signaled|fenced(o.Fence), 1, c.cfg.Priority
	wr.RemoteAddr, wr.CompareAdd, wr.Swap = p.base+at, o.Add, o.Swap
	wr.SGE[0] = rdma.SGE{Addr: n.base + local, Len: size, LKey: l.lkey}
	id := idOp<<idKindShift | uint64(c.num)<<idClientShift | uint64(c.tail)&uint64(len(c.ops)-1)
	s.left.Add(1)
	started := s.nodes != 0
	for w := (waiter{}); ; {
		l.mu.Lock()
		// The last places are for the answers and words of the node itself.
		if int(l.inUse.Load()) < l.depth-l.depth/8 {
			err = l.post(wr, id)
		} else {
			err = rdma.ErrQueueFull
		}
		l.mu.Unlock()
		if err != rdma.ErrQueueFull || !started {
			break
		}
		if l.poll() == 0 && !w.wait(c, false, 1<<node) {
			err = ErrTimeout
			break
		}
	}
	if err != nil {
		s.left.Add(-1)
		return err
	}
	s.nodes |= 1 << node
	n.counts.pieces.Add(1)
	return nil
}

func (c *Client) postLocal(o *Op, at, local, size uint64) {
	m := c.node.mem
	mine, its := m[local:local+size], m[at:at+size]
	switch o.Kind {
	case OpWrite:
		copy(its, mine)
	case OpRead:
		copy(mine, its)
	default:
		w := (*uint64)(unsafe.Pointer(&its[0]))
		old := atomic.LoadUint64(w)
		if o.Kind == OpFetchAdd {
			old = atomic.AddUint64(w, o.Add) - o.Add
		} else {
			for old == o.Add && !atomic.CompareAndSwapUint64(w, old, o.Swap) {
				old = atomic.LoadUint64(w)
			}
		}
		*(*uint64)(unsafe.Pointer(&mine[0])) = old
	}
}

// finished is the end of one part. Any client may have polled it.
func (c *Client) finished(i uint32, st rdma.Status) {
	s := &c.ops[i&uint32(len(c.ops)-1)]
	if st != rdma.StatusSuccess {
		s.bad.CompareAndSwap(0, uint32(st))
	}
	c.partDone(s)
}

func (c *Client) partDone(s *op) {
	e, posted, class := s.entry, s.posted, s.class // the slot is the poster's again when nothing is left
	if s.left.Add(-1) == 0 {
		e.leave()
		if class != classNone {
			c.node.load.end(c.node.now(), posted, class)
		}
		c.wake()
	}
}

// Pending is how many operations were posted and not polled.
func (c *Client) Pending() int { return int(c.tail - c.head) }

// Poll moves up to len(dst) finished operations into dst, in the order of their posts, and never blocks.
func (c *Client) Poll(dst []Done) (n int, err error) {
	for turn := 0; ; turn++ {
		for n < len(dst) && c.head != c.tail {
			s := &c.ops[c.head&uint32(len(c.ops)-1)]
			if s.left.Load() != 0 {
				break
			}
			st := rdma.Status(s.bad.Load())
			if !s.unsignaled || st != rdma.StatusSuccess {
				dst[n] = Done{Slot: s.slot, Len: s.len, Kind: s.kind, Status: st}
				n++
			}
			c.head++
		}
		if n > 0 || turn > 0 || c.head == c.tail {
			return n, nil
		}
		c.pollLinks(c.ops[c.head&uint32(len(c.ops)-1)].nodes)
	}
}
