package stack

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/setup"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Tags of messages to a session's port.
const (
	tagData = iota
	tagBye  // the sender closes
)

// idlePolls empty Polls pass between two looks at whether the peer is there.
const idlePolls = 1 << 12

// receive is one posted receive.
type receive struct {
	off  uint64
	len  uint32
	slot uint32
}

// session is two windows. It belongs to one goroutine.
type session struct {
	stack   *Stack
	node    *shared
	peer    int // node
	port    *lite.Port
	portNum int
	release func()

	first    *lite.Client
	clients  [maxPriorities]*lite.Client // by priority, made when needed; first is [0]
	more     []*lite.Client              // those that exist
	depth    int
	name     string
	win      []byte
	base     uint64 // of win in the arena
	own      lite.Handle
	far      lite.Handle
	farLen   uint64
	kinds    transports.KindSet
	mostSend uint32
	fence    bool // the device has it

	recvs      []receive // ring
	recvDepth  int
	head, tail uint32
	hold       []lite.Done
	batch      [batchMost]lite.Op
	turn       bool
	bye        bool
	idle       int
	err        error
	closed     bool
}

// batchMost is how many operations are handed on at once.
const batchMost = 64

// maxPriorities is those of the work requests of the waist.
const maxPriorities = 8

func (s *Stack) newSession(n *shared, cfg transports.Config, peer int) (*session, error) {
	x := &session{stack: s, node: n, peer: peer, depth: cfg.SendDepth, kinds: s.Caps().Kinds, hold: make([]lite.Done, 32)}
	size := uint32(1)
	for int(size) < cfg.RecvDepth {
		size <<= 1
	}
	x.recvs, x.recvDepth, x.fence = make([]receive, size), cfg.RecvDepth, s.caps.Features.Has(rdma.FeatFence)
	most, _ := ringFor(cfg.Window)
	x.mostSend = uint32(most)
	if err := x.create(cfg); err != nil {
		x.abandon()
		return nil, err
	}
	return x, nil
}

func (x *session) create(cfg transports.Config) (err error) {
	if x.first, err = x.client(0); err != nil {
		return err
	}
	if x.win, err = x.first.Alloc(cfg.Window); err != nil {
		if errors.Is(err, lite.ErrNoSpace) {
			err = fmt.Errorf("window of %d bytes: %w: more with arena=BYTES", cfg.Window, err)
		}
		return err
	}
	if x.base, err = x.first.Offset(x.win); err != nil {
		return err
	}
	x.name = fmt.Sprintf("window-%d-%d", x.node.ID(), x.stack.number())
	x.own, err = x.first.Publish(lite.RegionConfig{Name: x.name, Open: setup.Open}, x.win)
	return err
}

func (x *session) client(priority uint8) (*lite.Client, error) {
	c, err := x.node.Client(lite.ClientConfig{Depth: x.depth, Wait: lite.WaitPoll, Priority: priority})
	if err == nil {
		if x.port != nil {
			err = c.UseQueuePair(x.portNum)
		}
		x.clients[priority] = c
		x.more = append(x.more, c)
	}
	return c, err
}

// listen opens the port for the peer's sends. Its number is the same at both ends, so that
// the session's two windows share a queue pair of those that the nodes have.
func (x *session) listen(port int) (err error) {
	x.portNum = port
	if x.port, err = x.node.Serve(port, lite.PortConfig{MaxRequest: int(x.mostSend)}); err != nil {
		return err
	}
	return x.first.UseQueuePair(port)
}

// meet maps the peer's window.
func (x *session) meet(name string, size uint64) (err error) {
	x.farLen = size
	x.far, err = x.first.Map(name, setup.Want(x.kinds), "")
	return err
}

// Local is the own window; nil after Close.
func (x *session) Local() []byte { return x.win }

// RemoteLen is the size of the peer's window in bytes.
func (x *session) RemoteLen() uint64 { return x.farLen }

// Post starts operations in order.
func (x *session) Post(ops []transports.Op) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	for n < len(ops) && err == nil {
		var k int
		if k, err = x.postRun(ops[n:]); k == 0 && err == nil {
			if err = x.post(&ops[n]); err == nil {
				k = 1
			}
		}
		n += k
	}
	return n, err
}

// postRun posts the writes and reads of one priority at the front of ops as one batch.
func (x *session) postRun(ops []transports.Op) (int, error) {
	if len(ops) < 2 {
		return 0, nil
	}
	k := 0
	for k < min(len(ops), len(x.batch)) {
		o := &ops[k]
		kind, _, _ := setup.OneSided(o.Kind)
		if o.Kind != transports.KindWrite && o.Kind != transports.KindRead || o.Priority != ops[0].Priority ||
			o.Flags&transports.Inline != 0 || o.Priority >= maxPriorities || o.Flags&transports.Fence != 0 && !x.fence ||
			o.Local > uint64(len(x.win)) || uint64(o.Len) > uint64(len(x.win))-o.Local {
			break // one by one says why
		}
		x.batch[k] = lite.Op{Handle: x.far, Off: o.Remote, Local: x.base + o.Local, Len: o.Len, Slot: o.Slot,
			Kind: kind, Unsignaled: o.Flags&transports.Unsignaled != 0, Fence: o.Flags&transports.Fence != 0}
		k++
	}
	if k < 2 || x.clients[ops[0].Priority] == nil {
		return 0, nil
	}
	n, err := x.clients[ops[0].Priority].Post(x.batch[:k])
	return n, setup.Told(err)
}

func (x *session) post(o *transports.Op) error {
	size := o.Len
	kind, atomic, _ := setup.OneSided(o.Kind)
	switch {
	case !x.kinds.Has(o.Kind) || o.Kind == transports.KindCall || o.Flags&transports.Fence != 0 && !x.fence:
		return rdma.ErrNotSupported
	case o.Flags&transports.Inline != 0 || o.Priority >= maxPriorities:
		return rdma.ErrInvalid
	case atomic:
		if size != 0 && size != 8 {
			return rdma.ErrInvalid
		}
		size = 8
	}
	if o.Local > uint64(len(x.win)) || uint64(size) > uint64(len(x.win))-o.Local {
		return rdma.ErrInvalid
	}
	if o.Kind == transports.KindRecv {
		if int(x.tail-x.head) >= x.recvDepth {
			return rdma.ErrQueueFull
		}
		x.recvs[x.tail&uint32(len(x.recvs)-1)] = receive{o.Local, size, o.Slot}
		x.tail++
		return nil
	}
	c := x.clients[o.Priority]
	if c == nil {
		var err error
		if c, err = x.client(o.Priority); err != nil {
			return setup.Told(err)
		}
	}
	unsignaled, fence := o.Flags&transports.Unsignaled != 0, o.Flags&transports.Fence != 0
	if o.Kind == transports.KindSend {
		if size > x.mostSend {
			return rdma.ErrInvalid
		}
		return setup.Told(c.PostMessage(x.peer, x.portNum, tagData, x.base+o.Local, size, o.Slot, unsignaled, fence))
	}
	op := lite.Op{Handle: x.far, Off: o.Remote, Local: x.base + o.Local, Add: o.Add, Swap: o.Swap, Len: size, Slot: o.Slot,
		Kind: kind, Unsignaled: unsignaled, Fence: fence}
	return setup.Told(c.PostOne(&op))
}

// Poll moves finished operations into dst.
func (x *session) Poll(dst []transports.Done) (n int, err error) {
	if x.err != nil {
		return 0, x.err
	}
	// By turns, so that with room for one neither keeps the other from coming.
	if x.turn = !x.turn; x.turn {
		n = x.arrived(dst, x.own1(dst, 0))
	} else {
		n = x.own1(dst, x.arrived(dst, 0))
	}
	if n > 0 {
		x.idle = 0
		return n, nil
	}
	if x.idle++; x.idle%idlePolls == 0 && x.node.Dead(x.peer) != nil {
		x.bye = true
	}
	if x.bye && len(dst) > 0 {
		return x.flush(dst)
	}
	return 0, nil
}

// own1 takes the ends of own operations.
func (x *session) own1(dst []transports.Done, n int) int {
	for _, c := range x.more {
		for n < len(dst) {
			k, _ := c.Poll(x.hold[:min(len(x.hold), len(dst)-n)]) // it never fails
			for i := range x.hold[:k] {
				dst[n] = setup.Done(&x.hold[i])
				n++
			}
			if k == 0 {
				break
			}
		}
	}
	return n
}

// arrived takes messages into posted receives.
func (x *session) arrived(dst []transports.Done, n int) int {
	if x.head == x.tail || n == len(dst) {
		x.node.Progress()
		return n
	}
	for n < len(dst) && x.head != x.tail && !x.bye {
		r, err := x.port.TryRecv()
		if err != nil {
			x.node.Idle()
			break
		}
		if r.Tag == tagBye {
			x.bye = true
			r.Release()
			break
		}
		q := x.recvs[x.head&uint32(len(x.recvs)-1)]
		x.head++
		d := transports.Done{Slot: q.slot, Len: uint32(len(r.Payload)), Kind: transports.KindRecv}
		if len(r.Payload) > int(q.len) {
			d.Status, d.Len = rdma.StatusLocLenErr, 0
		} else {
			copy(x.win[q.off:], r.Payload)
		}
		r.Release()
		dst[n] = d
		n++
	}
	return n
}

// flush ends what is outstanding when the peer is gone; the next Poll has the error.
func (x *session) flush(dst []transports.Done) (n int, err error) {
	for n < len(dst) && x.head != x.tail {
		q := x.recvs[x.head&uint32(len(x.recvs)-1)]
		x.head++
		dst[n] = transports.Done{Slot: q.slot, Kind: transports.KindRecv, Status: rdma.StatusWRFlushErr}
		n++
	}
	if n == 0 {
		x.err = fmt.Errorf("session with node %d: %w", x.peer, rdma.ErrUnreachable)
		return 0, x.err
	}
	return n, nil
}

// PingPong is not there.
func (x *session) PingPong([]transports.PingPongStep, []transports.Done) (int, error) {
	return 0, rdma.ErrNotSupported
}

// Wait is not there: the set-up refuses Events.
func (x *session) Wait(context.Context) error {
	if x.closed {
		return rdma.ErrClosed
	}
	return rdma.ErrState
}

// Close tells the peer, behind everything that was posted, and frees the window. What a
// peer may still write to stays mapped with the node. Idempotent.
func (x *session) Close() error {
	if x.closed {
		return nil
	}
	if x.port != nil && x.err == nil && !x.bye {
		_ = x.first.SendTagged(x.peer, x.portNum, tagBye, nil) // a peer that is gone needs none
	}
	return x.abandon()
}

// abandon frees what there is.
func (x *session) abandon() error {
	x.closed, x.err = true, rdma.ErrClosed
	if x.port != nil {
		x.port.Close()
	}
	for i := len(x.more) - 1; i > 0; i-- {
		x.more[i].Close()
	}
	if c := x.first; c != nil {
		freed := true
		if x.far != 0 {
			_ = c.Unmap(x.far) // the region is the peer's
		}
		if x.own != 0 {
			freed = c.FreeRegion(x.own) == nil
		}
		if x.win != nil && freed {
			_ = c.Free(x.win) // Alloc gave it
		}
		c.Close()
	}
	x.win = nil
	if x.release != nil {
		x.release()
	}
	return x.node.done()
}
