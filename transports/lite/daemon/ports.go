package daemon

import (
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

func (c *conn) serve(num, most int) error {
	if num < 0 || num >= portsMost {
		return lite.ErrNoPort
	}
	p, err := c.daemon.node.Serve(num, lite.PortConfig{MaxRequest: most,
		Handle: func(r *lite.Request) { c.message(num, r) }})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ports[num] = p
	// Two ends with the same port number then share a queue pair (lite.Client.UseQueuePair).
	c.queuePair.Store(int32(num) + 1)
	return nil
}

func (c *conn) open(num uint8) bool {
	if num >= portsMost {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ports[num] != nil
}

// message keeps what arrived, where the node is polled. What is kept lies in the rings, which bound it.
func (c *conn) message(port int, r *lite.Request) {
	if c.closing.Load() {
		refuse(r, lite.ErrNoPort)
		return
	}
	c.mu.Lock()
	c.arrived = append(c.arrived, arrival{port, *r})
	c.queued.Store(int32(len(c.arrived)))
	c.mu.Unlock()
	c.daemon.kick()
}

func (c *conn) messages() {
	if c.queued.Load() == 0 || !c.hasReceives() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.arrived[:0]
	for i := range c.arrived {
		a := &c.arrived[i]
		list := c.recvs[a.port]
		if len(list) == 0 {
			kept = append(kept, *a)
			continue
		}
		q := list[0]
		if len(a.r.Payload) > int(q.room) {
			refuse(&a.r, lite.ErrTooBig)
			continue
		}
		c.recvs[a.port] = append(list[:0], list[1:]...)
		c.outstanding--
		e := end{kind: kindRecv, slot: q.slot, len: uint32(copy(c.page[q.local:], a.r.Payload)), from: uint8(a.r.From),
			tag: a.r.Tag}
		if a.r.OneWay {
			e.flags = flagOneWay
			a.r.Release()
		} else {
			e.token = c.token(&a.r)
		}
		c.complete(&e)
	}
	clear(c.arrived[len(kept):])
	c.arrived = kept
	c.queued.Store(int32(len(kept)))
}

// token keeps a message until it is answered; mu is held. The rings bound how many.
func (c *conn) token(r *lite.Request) uint32 {
	if n := len(c.freeTokens); n > 0 {
		t := c.freeTokens[n-1]
		c.freeTokens = c.freeTokens[:n-1]
		c.tokens[t] = *r
		return t
	}
	c.tokens = append(c.tokens, *r)
	return uint32(len(c.tokens) - 1)
}

// reply answers a message. A token that is not the client's is a protocol error.
func (c *conn) reply(q *request) {
	c.mu.Lock()
	t := q.handle
	if t >= uint64(len(c.tokens)) || c.tokens[t].From == noNode {
		c.mu.Unlock()
		c.protocolError("it answers message %d, which it has not", t)
		return
	}
	r := c.tokens[t]
	c.tokens[t] = lite.Request{From: noNode}
	c.freeTokens = append(c.freeTokens, uint32(t))
	c.mu.Unlock()
	b := c.page[q.local:][:q.len]
	switch {
	case q.node == 0:
		_ = r.Reply(b) // a caller with too little room gets an error, one that left nothing
	case q.node > 0:
		_ = r.ReplyCode(lite.Code(q.node), b)
	default:
		_ = r.ReplyError(lite.Code(q.node))
	}
}
