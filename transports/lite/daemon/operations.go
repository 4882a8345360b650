package daemon

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func handleOf(value uint64, err error) (lite.Handle, error) { return lite.Handle(value), err }

func errOnly(_ uint64, err error) error { return err }

func (c *Client) Malloc(r lite.RegionConfig) (lite.Handle, error) {
	return handleOf(c.ask(&ask{Op: "malloc", Region: &r}))
}

// Publish makes a region of bytes of the client's place. It ends with the client.
func (c *Client) Publish(r lite.RegionConfig, b []byte) (lite.Handle, error) {
	off, ok := c.inside(b)
	if !ok || len(b) == 0 {
		return 0, lite.ErrMemory
	}
	return handleOf(c.ask(&ask{Op: "publish", Region: &r, Off: off, Len: uint64(len(b))}))
}

func (c *Client) Map(name string, want lite.Perm, password string) (lite.Handle, error) {
	return handleOf(c.ask(&ask{Op: "map", Name: name, Perm: want, Password: password}))
}

func (c *Client) Unmap(h lite.Handle) error { return errOnly(c.ask(&ask{Op: "unmap", Handle: h})) }

func (c *Client) FreeRegion(h lite.Handle) error { return errOnly(c.ask(&ask{Op: "free", Handle: h})) }

func (c *Client) Grant(h lite.Handle, node int, perm lite.Perm) error {
	return errOnly(c.ask(&ask{Op: "grant", Handle: h, Node: node, Perm: perm}))
}

func (c *Client) Move(h lite.Handle, nodes ...int) (lite.Handle, error) {
	return handleOf(c.ask(&ask{Op: "move", Handle: h, Nodes: nodes}))
}

func (c *Client) Size(h lite.Handle) (uint64, error) { return c.ask(&ask{Op: "size", Handle: h}) }

func (c *Client) Memset(h lite.Handle, off uint64, b byte, n uint64) error {
	return errOnly(c.ask(&ask{Op: "memset", Handle: h, Off: off, Byte: b, Len: n}))
}

func (c *Client) Memmove(dst lite.Handle, dstOff uint64, src lite.Handle, srcOff, n uint64) error {
	return errOnly(c.ask(&ask{Op: "memmove", Handle: src, Other: dst, Off: srcOff, To: dstOff, Len: n}))
}

func (c *Client) Barrier(name string, count int) error {
	return errOnly(c.ask(&ask{Op: "barrier", Name: name, Len: uint64(count)}))
}

func (c *Client) Write(h lite.Handle, off uint64, src []byte) error {
	return c.transfer(kindWrite, h, off, src)
}

func (c *Client) Read(h lite.Handle, off uint64, dst []byte) error {
	return c.transfer(kindRead, h, off, dst)
}

// bounceMost is how much foreign memory is copied at a time, bytes.
const bounceMost = 256 << 10

func (c *Client) transfer(k kind, h lite.Handle, off uint64, b []byte) error {
	at, inside := c.inside(b)
	for first := inside; len(b) > 0 || first; first = false {
		n := min(len(b), 1<<30)
		if !inside {
			var err error
			if at, n, err = c.bounceBuffer(len(b)); err != nil {
				return err
			}
			if k == kindWrite {
				copy(c.page[at:], b[:n])
			}
		}
		if _, err := c.run(&request{kind: k, handle: uint64(h), off: off, local: at, len: uint32(n)}); err != nil {
			return err
		}
		if !inside && k == kindRead {
			copy(b, c.page[at:at+uint64(n)])
		}
		off, at, b = off+uint64(n), at+uint64(n), b[n:]
	}
	return nil
}

func (c *Client) bounceBuffer(n int) (at uint64, room int, err error) {
	n = min(n, bounceMost)
	if c.bounceRoom < n {
		size := max(4096, 1<<bits.Len(uint(n-1)))
		if c.bounceRoom > 0 {
			_ = c.space.Free(c.bounce) // it was given
			c.bounceRoom = 0
		}
		if c.bounce, err = c.space.Alloc(uint64(size)); err != nil {
			return 0, 0, lite.ErrNoSpace
		}
		c.bounceRoom = size
	}
	return c.bounce, n, nil
}

func (c *Client) FetchAdd(h lite.Handle, off uint64, add uint64) (uint64, error) {
	return c.atomic(&request{kind: kindFetchAdd, handle: uint64(h), off: off, add: add})
}

func (c *Client) CmpSwap(h lite.Handle, off uint64, expect, swap uint64) (uint64, error) {
	return c.atomic(&request{kind: kindCmpSwap, handle: uint64(h), off: off, add: expect, swap: swap})
}

func (c *Client) TestSet(h lite.Handle, off uint64) (bool, error) {
	old, err := c.CmpSwap(h, off, 0, 1)
	return err == nil && old == 0, err
}

func (c *Client) atomic(r *request) (uint64, error) {
	r.local, r.len = c.word, 8
	if _, err := c.run(r); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(c.page[c.word:]), nil
}

func (c *Client) body(b []byte) (uint64, error) {
	if at, ok := c.inside(b); ok {
		return at, nil
	}
	if c.bounceRoom < len(b) && len(b) > bounceMost {
		return 0, lite.ErrTooBig
	}
	at, _, err := c.bounceBuffer(len(b))
	if err == nil {
		copy(c.page[at:], b)
	}
	return at, err
}

// Prepare has the daemon ask for the ring of a port, once.
func (c *Client) Prepare(node, port int) error {
	if c.prepared[[2]int{node, port}] {
		return nil
	}
	if node == c.node {
		return lite.ErrNoPort // a call to the own node goes inside the process
	}
	err := errOnly(c.ask(&ask{Op: "prepare", Node: node, Port: port}))
	if err == nil {
		c.prepared[[2]int{node, port}] = true
	}
	return err
}

// Call sends req to a port of another node and waits for the answer, which lies in the place until the next call. req
// is longer than 256 KiB only in the place itself.
func (c *Client) Call(node, port int, req []byte) ([]byte, error) {
	if err := c.Prepare(node, port); err != nil {
		return nil, err
	}
	at, err := c.body(req)
	if err != nil {
		return nil, err
	}
	d, err := c.run(&request{kind: kindCall, node: int32(node), port: uint8(port), local: at, len: uint32(len(req)),
		off: c.replyAt, room: uint32(c.cfg.MaxReply)})
	if code, ok := err.(lite.Code); err != nil && (!ok || code < 0) {
		return nil, err
	}
	return c.page[c.replyAt:][:min(int(d.len), c.cfg.MaxReply)], err
}

// Send sends a message one way and returns when its bytes are the caller's again.
func (c *Client) Send(node, port int, msg []byte) error {
	if err := c.Prepare(node, port); err != nil {
		return err
	}
	at, err := c.body(msg)
	if err == nil {
		_, err = c.run(&request{kind: kindSend, node: int32(node), port: uint8(port), local: at, len: uint32(len(msg))})
	}
	return err
}

// Message is one that arrived at a port of the client.
type Message struct {
	Payload []byte // in the place, until Reply or Release
	From    int    // node
	Tag     uint32
	OneWay  bool

	client *Client
	token  uint32
	slot   uint32 // of the receive that it lies in
}

// Receive is the number of the receive that the message lies in.
func (m *Message) Receive() int { return int(m.slot & 0xffff) }

// receivesMost leaves half the rings for what is not a message.
const receivesMost = depth / 2

// Serve opens a port of the node for this client, with so many receives of so many bytes.
func (c *Client) Serve(port, most, receives int) error {
	if receives < 1 || receives > receivesMost {
		return &rdma.OpError{Op: "lite serve", Object: "port", Err: fmt.Errorf("%d receives, want 1 to %d: %w",
			receives, receivesMost, rdma.ErrInvalid)}
	}
	if err := c.Open(port, most); err != nil {
		return err
	}
	for i := range receives {
		at, err := c.space.Alloc(uint64(max(most, 1)))
		if err != nil {
			return lite.ErrNoSpace
		}
		if err := c.PostReceive(port, at, most, i); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a port of the node for this client, without receives; PostReceive posts them.
func (c *Client) Open(port, most int) error {
	return errOnly(c.ask(&ask{Op: "serve", Port: port, Len: uint64(most)}))
}

// PostReceive posts a receive into size bytes of the place at local, once: Message.Receive of its message is num, below
// 65536. A message that is longer is refused, and the receive stays.
func (c *Client) PostReceive(port int, local uint64, size, num int) error {
	return c.receive(slotReceive|uint32(port)<<16|uint32(num), room{local, size})
}

func (c *Client) receive(slot uint32, in room) error {
	c.waiting = wait{}
	err := c.pushWait(&request{kind: kindRecv, port: uint8(slot >> 16), local: in.at, room: uint32(in.size), slot: slot},
		&c.waiting)
	if err == nil {
		c.receives[slot] = in
		c.publish()
	}
	return err
}

// Recv takes the oldest message, or ErrEmpty.
func (c *Client) Recv() (Message, error) {
	c.pollRing()
	if len(c.inbox) == 0 {
		if c.ended.Load() {
			return Message{}, lite.ErrClosed
		}
		return Message{}, lite.ErrEmpty
	}
	m := c.inbox[0]
	c.inbox = append(c.inbox[:0], c.inbox[1:]...)
	return m, nil
}

// RecvWait is Recv that waits for at most the client's timeout.
func (c *Client) RecvWait() (Message, error) {
	for w := (wait{}); ; {
		m, err := c.Recv()
		if err != lite.ErrEmpty {
			return m, err
		}
		if !c.wait(&w) {
			return m, c.late()
		}
	}
}

func (c *Client) received(d *end) {
	q := c.receives[d.slot]
	if d.code != 0 || int(d.len) > q.size {
		return
	}
	c.inbox = append(c.inbox, Message{Payload: c.page[q.at:][:d.len], From: int(d.from), Tag: d.tag,
		OneWay: d.flags&flagOneWay != 0, client: c, token: d.token, slot: d.slot})
}

// Reply answers with b, and gives the receive back. code is 0, or the application's own.
func (m *Message) Reply(code lite.Code, b []byte) error {
	c := m.client
	if !m.OneWay {
		at, err := c.body(b)
		if err != nil {
			return err
		}
		r := request{kind: kindReply, handle: uint64(m.token), node: int32(code), local: at, len: uint32(len(b))}
		if err := c.pushWait(&r, new(wait)); err != nil {
			return err
		}
		c.publish()
		// The bytes are copied when the request is taken.
		for end := time.Now().Add(c.cfg.Timeout); c.page.word(wordTaken).Load() != c.posted; procs.Yield() {
			if c.ended.Load() || time.Now().After(end) {
				return c.late()
			}
		}
	}
	return c.receive(m.slot, c.receives[m.slot])
}

// Release gives the receive of a message one way back; a call is answered with ErrFail.
func (m *Message) Release() error { return m.Reply(lite.ErrFail, nil) }
