package lite

import (
	"encoding/binary"
	"math/bits"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// run posts one operation and waits for its end. Operations posted before it stay to be polled.
func (c *Client) run(o *Op) error {
	for w := (waiter{}); ; {
		err := c.post(o)
		if err == nil {
			return c.waitNewest(o.Len > longMessage)
		}
		if err != rdma.ErrQueueFull || int(c.tail-c.head) >= c.cfg.Depth { // the caller's own: only it can poll them
			return err
		}
		c.node.pollLinks() // other clients' operations fill the queue
		if !w.waitPolling(c) {
			return ErrTimeout
		}
	}
}

// waitNewest waits for the newest posted operation and takes it off the ring.
func (c *Client) waitNewest(long bool) error {
	w := waiter{}
	last := c.tail - 1
	s := &c.ops[last&uint32(len(c.ops)-1)]
	for s.left.Load() != 0 {
		c.pollLinks(s.nodes)
		if s.left.Load() == 0 {
			break
		}
		if !w.wait(c, long, s.nodes) {
			c.markAwake()
			// The local bytes may still be touched: the nodes that do not answer go.
			c.giveUp(s.nodes)
			return ErrTimeout
		}
	}
	w.served(c)
	c.markAwake()
	c.tail = last // the newest, which no Poll returns
	if st := rdma.Status(s.bad.Load()); st != rdma.StatusSuccess {
		return c.failure(s.nodes, st)
	}
	return nil
}

// failure is a failed status as an error: ErrPeerDead for a node that failed.
func (c *Client) failure(nodes uint32, st rdma.Status) error {
	for ; nodes != 0; nodes &= nodes - 1 {
		p := c.node.peers[bits.TrailingZeros32(nodes)].Load()
		if p == nil || p.dead.Load() || c.link(p).broken.Load() {
			return ErrPeerDead
		}
	}
	return &rdma.StatusError{WC: rdma.WC{Status: st}}
}

func (c *Client) giveUp(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		if p := c.node.peers[bits.TrailingZeros32(nodes)].Load(); p != nil {
			c.node.lose(p, ErrTimeout)
		}
	}
}

// Write copies src to the region at off and returns when the device completes it: placed, or with
// rdma.CompletionLocal sent in order. Bytes outside the arena are copied through it.
func (c *Client) Write(h Handle, off uint64, src []byte) error {
	return c.transfer(OpWrite, h, off, src)
}

// Read copies from the region at off to dst.
func (c *Client) Read(h Handle, off uint64, dst []byte) error { return c.transfer(OpRead, h, off, dst) }

func (c *Client) transfer(kind OpKind, h Handle, off uint64, b []byte) error {
	local, inside := c.node.inside(b)
	if !inside { // the whole range is checked before the first byte moves
		if _, err := c.node.handles.look(h, opKinds[kind].perm, off, uint64(len(b))); err != nil {
			return err
		}
	}
	o := Op{Kind: kind, Handle: h, Off: off, Local: local}
	for first := inside; len(b) > 0 || first; first = false {
		n := min(len(b), 1<<30) // a work request names at most 2 GiB
		var mid []byte
		if !inside {
			var err error
			if mid, o.Local, err = c.bounceBuffer(len(b)); err != nil {
				return err
			}
			if n = len(mid); kind == OpWrite {
				copy(mid, b)
			}
		}
		o.Len = uint32(n)
		if err := c.run(&o); err != nil {
			return err
		}
		if kind == OpRead {
			copy(b, mid)
		}
		o.Off, o.Local, b = o.Off+uint64(n), o.Local+uint64(n), b[n:]
	}
	return nil
}

// bounceBuffer is memory of the arena for up to n bytes of the caller.
func (c *Client) bounceBuffer(n int) (b []byte, off uint64, err error) {
	n = min(n, bounceLen)
	if c.bounceRoom < n {
		size := max(4096, 1<<bits.Len(uint(n-1)))
		if c.bounceRoom > 0 {
			c.node.free(c.bounce)
			c.bounceRoom = 0
		}
		if c.bounce, err = c.node.alloc(size); err != nil {
			return nil, 0, err
		}
		c.bounceRoom = size
	}
	return c.node.bytes(c.bounce, n), c.bounce, nil
}

// FetchAdd adds to the 8 bytes at off, a multiple of 8, and returns what was there.
func (c *Client) FetchAdd(h Handle, off uint64, add uint64) (old uint64, err error) {
	return c.atomic(&Op{Kind: OpFetchAdd, Handle: h, Off: off, Add: add})
}

// CmpSwap stores swap in the 8 bytes at off if they hold expect, and returns what was there.
func (c *Client) CmpSwap(h Handle, off uint64, expect, swap uint64) (old uint64, err error) {
	return c.atomic(&Op{Kind: OpCmpSwap, Handle: h, Off: off, Add: expect, Swap: swap})
}

// TestSet stores 1 in the 8 bytes at off if they are 0, and tells whether it did.
func (c *Client) TestSet(h Handle, off uint64) (bool, error) {
	old, err := c.CmpSwap(h, off, 0, 1)
	return err == nil && old == 0, err
}

func (c *Client) atomic(o *Op) (uint64, error) {
	o.Local, o.Len = c.word, 8
	if err := c.run(o); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(c.node.bytes(c.word, 8)), nil
}
