package lite

import (
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Pending is a call that was started.
type Pending struct {
	slot *call
	gen  uint32
}

// Call sends req to a port of a node and waits for the answer, which lies in the client's memory until its next call
// but Outstanding-1. Errors: the ports' (ErrNoPort, ErrTooBig, ErrPortFull), the server's, ErrPeerDead, ErrTimeout.
func (c *Client) Call(node, port int, req []byte) ([]byte, error) {
	p, err := c.Start(node, port, req)
	if err != nil {
		return nil, err
	}
	return c.Finish(p, len(req) > longMessage)
}

// Start sends a call and does not wait. ErrWait: all Outstanding slots are in use.
func (c *Client) Start(node, port int, req []byte) (Pending, error) {
	s, gen, err := c.slot()
	if err != nil {
		return Pending{}, err
	}
	if err := c.start(s, gen, node, port, req); err != nil {
		s.word.Store(gen<<8 | uint32(callFree)) // it was never sent
		return Pending{}, err
	}
	return Pending{s, gen}, nil
}

func (c *Client) slot() (*call, uint32, error) {
	for range c.calls {
		i := c.next % len(c.calls)
		s := c.calls[i]
		c.next++
		gen, state := s.state()
		if state == callZombie && s.move(gen, callZombie, callOrphan) {
			// A deadline passed; the answer may still come, into this buffer.
			fresh, err := c.node.calls.add(c.node, c, int(s.room)-wire.ReplyLen)
			if err != nil {
				c.calls = append(c.calls[:i:i], c.calls[i+1:]...)
				return nil, 0, err
			}
			c.calls[i], s = fresh, fresh
		}
		gen, state = s.state()
		if state != callFree {
			continue
		}
		gen = (gen + 1) & callGenMax
		s.word.Store(gen<<8 | uint32(callWaiting))
		return s, gen, nil
	}
	return nil, 0, ErrWait
}

func (c *Client) start(s *call, gen uint32, node, port int, req []byte) error {
	n := c.node
	if port < 0 || port >= wire.Ports {
		return ErrNoPort
	}
	slot := gen<<callBits | s.place
	if node == n.id {
		s.to.Store(-1)
		return n.toSelf(port, slot, req, c.cfg.Priority, false, s.room)
	}
	p, err := n.peerOf(node)
	if err != nil {
		return err
	}
	s.to.Store(int32(node))
	out, err := c.ring(p, port)
	if err != nil {
		return err
	}
	if wire.RequestLen+len(req) > stageLen {
		if req, err = s.keep(n, req); err != nil {
			return err
		}
	}
	r := wire.Request{ReplyTo: n.base + s.buf, Room: s.room, Slot: slot, Priority: c.cfg.Priority}
	return c.into(p, out, port, wire.ImmRequest, &r, req, 0, 0)
}

// keep puts a long request where it can stay until the answer is there.
func (s *call) keep(n *Node, req []byte) ([]byte, error) {
	if _, ok := n.inside(req); ok {
		return req, nil
	}
	if s.bodyRoom < len(req) {
		off, err := n.alloc(len(req))
		if err != nil {
			return nil, err
		}
		if s.body != 0 {
			n.free(s.body)
		}
		s.body, s.bodyRoom = off, len(req)
	}
	b := n.bytes(s.body, len(req))
	copy(b, req)
	return b, nil
}

// into writes a message into a ring, and waits for room and receives at the peer.
func (c *Client) into(p *peer, out *outRing, port int, kind uint32, r *wire.Request, body []byte, flags rdma.SendFlags,
	id uint64) error {
	l := c.link(p)
	for w := (waiter{}); ; {
		err := out.send(l, port, kind, r, body, flags, id)
		switch err {
		case nil:
			c.markAwake()
			if int(l.inUse.Load()) > l.depth/2 {
				l.poll()
			}
			return nil
		case rdma.ErrQueueFull, errNoCredit, ErrPortFull:
		default:
			return err
		}
		if p.dead.Load() {
			return ErrPeerDead
		}
		l.poll()
		if c.cfg.Wake != nil {
			return rdma.ErrQueueFull
		}
		c.node.poll()
		if !w.waitPolling(c) {
			if err == ErrPortFull {
				return err
			}
			return ErrTimeout
		}
	}
}

// toSelf is a message to a port of this node: a copy, and the same rules.
func (n *Node) toSelf(port int, slot uint32, body []byte, prio uint8, oneWay bool, room uint32) error {
	p := n.ports[port].Load()
	if p == nil {
		return ErrNoPort
	}
	if uint64(len(body)) > p.maxMessage {
		return ErrTooBig
	}
	// The callers' slots bound what waits for a port, and this does for one-way messages.
	if oneWay && p.queue.Len() >= int(p.size/ring.Granule) {
		return ErrPortFull
	}
	p.deliver(&Request{Payload: append([]byte(nil), body...), From: n.id, Priority: prio, OneWay: oneWay, Tag: slot,
		node: n, room: room, slot: slot})
	return nil
}

// GiveUp ends the wait for a call, as its deadline would; the late answer frees its slot. False: it is answered.
func (c *Client) GiveUp(p Pending) bool { return p.slot.move(p.gen, callWaiting, callZombie) }

// Prepare asks a port of another node for its ring, as the first message to it does.
func (c *Client) Prepare(node, port int) error {
	if port < 0 || port >= wire.ControlPort {
		return ErrNoPort
	}
	if node == c.node.id {
		return nil
	}
	_, _, err := c.ringAt(node, port)
	return err
}

// ringAt is the ring for a port of another node.
func (c *Client) ringAt(node, port int) (p *peer, out *outRing, err error) {
	if p, err = c.node.peerOf(node); err == nil {
		out, err = c.ring(p, port)
	}
	return p, out, err
}

// markAwake follows a sleep. A client with ClientConfig.Wake never sleeps, and is always signalled.
func (c *Client) markAwake() { c.asleep.Store(c.cfg.Wake != nil) }

// Number is that of the call at this node, as the server sees it in Request.Tag.
func (p Pending) Number() uint32 { return p.gen<<callBits | p.slot.place }

// Finish waits for the answer of a started call. A Code above 0 is the application's
// (Request.ReplyCode), and comes with bytes. long makes adaptive waiting sleep at once.
func (c *Client) Finish(p Pending, long bool) ([]byte, error) {
	w := waiter{}
	for {
		b, err := c.TryFinish(p)
		if err != ErrWait {
			w.served(c)
			c.markAwake()
			c.handOver()
			return b, err
		}
		more := false
		if c.cfg.Wait == WaitPoll && !c.leads() {
			more = c.follow(&w, p)
		} else {
			more = w.wait(c, long, 0)
		}
		if !more {
			c.markAwake()
			c.handOver()
			if p.slot.move(p.gen, callWaiting, callZombie) {
				return nil, ErrTimeout
			}
		}
	}
}

// TryFinish is the answer of a started call, or ErrWait. It polls the node.
func (c *Client) TryFinish(p Pending) ([]byte, error) {
	s := p.slot
	gen, state := s.state()
	if gen != p.gen {
		return nil, ErrEmpty
	}
	if state == callWaiting {
		c.node.poll()
		if _, state = s.state(); state == callWaiting {
			return nil, ErrWait
		}
	}
	if state != callDone {
		return nil, ErrEmpty
	}
	code, size := s.code, s.len
	s.move(gen, callDone, callFree)
	switch b := c.node.bytes(s.buf+wire.ReplyLen, int(size)); {
	case code > 0: // the application's own
		return b, Code(code)
	case code < 0:
		return nil, errorOf(code)
	default:
		return b, nil
	}
}

// Send is a one-way message: it returns when the bytes are the caller's again.
func (c *Client) Send(node, port int, msg []byte) error { return c.SendTagged(node, port, 0, msg) }

// SendTagged is Send with a number below 1<<24 that the server finds in Request.Tag.
func (c *Client) SendTagged(node, port int, tag uint32, msg []byte) error {
	n := c.node
	if port < 0 || port >= wire.ControlPort {
		return ErrNoPort
	}
	if node == n.id {
		return n.toSelf(port, tag, msg, c.cfg.Priority, true, 0)
	}
	p, out, err := c.ringAt(node, port)
	if err != nil {
		return err
	}
	r := wire.Request{Priority: c.cfg.Priority, Slot: tag & 0xffffff}
	if wire.RequestLen+len(msg) <= stageLen {
		return c.into(p, out, port, wire.ImmOneWay, &r, msg, 0, 0)
	}
	if uint64(len(msg)) > out.maxMessage {
		return ErrTooBig
	}
	off, b, err := n.copyOf(msg)
	if err != nil {
		return err
	}
	if err = c.into(p, out, port, wire.ImmOneWay, &r, b, rdma.Signaled, idFree<<idKindShift|off/64); err != nil {
		n.free(off)
	}
	c.link(p).poll()
	return err
}

// ring is the ring for a port at a peer, which is asked for one the first time.
func (c *Client) ring(p *peer, port int) (*outRing, error) {
	if out := p.ring(port); out != nil {
		return out, nil
	}
	if c.cfg.Wake != nil {
		return nil, ErrWait
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	if out := p.ring(port); out != nil { // another client was faster
		return out, nil
	}
	n := c.node
	head, err := n.alloc(wire.WordLen)
	if err != nil {
		return nil, err
	}
	wire.PutWord(n.bytes(head, wire.WordLen), 0)
	var a ringAnswer
	if err := c.control(p.id, opRing, ringRequest{Port: port, Head: n.base + head}, &a); err != nil {
		n.free(head)
		return nil, err
	}
	s, err := ring.NewSender(a.Size)
	if err != nil || !p.holds(a.At, a.Size) || a.Most > ring.MaxRecord(a.Size) {
		n.free(head)
		return nil, ErrFail
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[port] = &outRing{ring: s, at: a.At, head: head, maxMessage: a.Most}
	return p.out[port], nil
}
