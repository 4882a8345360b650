package daemon

import (
	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// serve opens a port for the client. Messages wait for its receives.
func (g *guest) serve(num, most int) error {
	if num < 0 || num >= portsMost {
		return lite.ErrNoPort
	}
	p, err := g.daemon.node.Serve(num, lite.PortConfig{MaxRequest: most, Handle: func(r *lite.Request) { g.message(num, r) }})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ports[num] = p
	// What the client sends takes the queue pair of its newest port, so that two ends of the
	// same port's number share one (lite.Client.UseQueuePair says why).
	g.pair.Store(int32(num) + 1)
	return nil
}

func (g *guest) open(num uint8) bool {
	if num >= portsMost {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ports[num] != nil
}

// message keeps what arrived. It runs where the node is polled. What is kept lies in the
// rings, which bound it.
func (g *guest) message(port int, r *lite.Request) {
	if g.gone.Load() {
		refuse(r, lite.ErrNoPort)
		return
	}
	g.mu.Lock()
	g.arrived = append(g.arrived, arrival{port, *r})
	g.some.Store(int32(len(g.arrived)))
	g.mu.Unlock()
	g.daemon.kick()
}

// messages hands messages to receives.
func (g *guest) messages() {
	if g.some.Load() == 0 || !g.receives() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := g.arrived[:0]
	for i := range g.arrived {
		a := &g.arrived[i]
		list := g.recvs[a.port]
		if len(list) == 0 {
			kept = append(kept, *a)
			continue
		}
		q := list[0]
		if len(a.r.Payload) > int(q.room) {
			refuse(&a.r, lite.ErrTooBig)
			continue
		}
		g.recvs[a.port] = append(list[:0], list[1:]...)
		g.out--
		e := end{kind: kindRecv, slot: q.slot, len: uint32(copy(g.page[q.local:], a.r.Payload)), from: uint8(a.r.From), tag: a.r.Tag}
		if a.r.OneWay {
			e.flags = flagOneWay
			a.r.Release()
		} else {
			e.token = g.token(&a.r)
		}
		g.tell(&e)
	}
	clear(g.arrived[len(kept):])
	g.arrived = kept
	g.some.Store(int32(len(kept)))
}

// token keeps a message until it is answered; mu is held. The rings bound how many.
func (g *guest) token(r *lite.Request) uint32 {
	if n := len(g.spare); n > 0 {
		t := g.spare[n-1]
		g.spare = g.spare[:n-1]
		g.tokens[t] = *r
		return t
	}
	g.tokens = append(g.tokens, *r)
	return uint32(len(g.tokens) - 1)
}

// reply answers a message. A token that is not the client's is a lie.
func (g *guest) reply(q *request) {
	g.mu.Lock()
	t := q.handle
	if t >= uint64(len(g.tokens)) || g.tokens[t].From == noNode {
		g.mu.Unlock()
		g.lied("it answers message %d, which it has not", t)
		return
	}
	r := g.tokens[t]
	g.tokens[t] = lite.Request{From: noNode}
	g.spare = append(g.spare, uint32(t))
	g.mu.Unlock()
	b := g.page[q.local:][:q.len]
	switch {
	case q.node == 0:
		_ = r.Reply(b) // who has too little room is told, who is gone needs none
	case q.node > 0:
		_ = r.ReplyCode(lite.Code(q.node), b)
	default:
		_ = r.ReplyError(lite.Code(q.node))
	}
}
