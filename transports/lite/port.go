package lite

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// PortConfig is how a node serves a port.
type PortConfig struct {
	MaxRequest int // bytes; 0 takes what the node's ring size allows. A larger one makes larger rings
	// Handle, when set, is called for every message in the goroutine that polls the node, and must not block. The request
	// is its own until it returns; to answer later it keeps a copy. Otherwise messages wait for Port.Recv.
	Handle func(r *Request)
}

// Port is a number under which a node takes messages.
type Port struct {
	node       *Node
	num        int
	maxMessage uint64
	size       uint64
	handle     func(r *Request)
	closed     atomic.Bool

	mu    sync.Mutex
	queue Queue[Request] // messages that were not taken
	wake  chan struct{}
}

// Request is one message. Payload lies in the ring until Reply or Release, which end the request.
type Request struct {
	Payload  []byte
	From     int // node
	Priority uint8
	OneWay   bool
	Tag      uint32 // of PostMessage and SendTagged; of a call, its number at the caller

	node  *Node
	port  *Port
	link  *link // nil for a message from this node
	ring  *inRing
	start uint64
	to    uint64 // where the answer goes
	room  uint32
	slot  uint32
}

// Serve opens a port, 0 to 62. ErrExists while it is open.
func (n *Node) Serve(num int, cfg PortConfig) (*Port, error) {
	if num < 0 || num >= wire.ControlPort {
		return nil, opError("serve", "port", ErrNoPort)
	}
	p := &Port{node: n, num: num, size: uint64(n.cfg.Ring), handle: cfg.Handle, wake: make(chan struct{}, 1),
		maxMessage: ring.MaxRecord(uint64(n.cfg.Ring)) - wire.RequestLen}
	if cfg.MaxRequest > 0 {
		size, err := ring.SizeFor(uint64(cfg.MaxRequest + wire.RequestLen))
		if err != nil {
			return nil, opError("serve", "port", ErrTooBig)
		}
		p.size, p.maxMessage = max(p.size, size), uint64(cfg.MaxRequest)
	}
	if !n.ports[num].CompareAndSwap(nil, p) {
		return nil, opError("serve", "port", ErrExists)
	}
	return p, nil
}

// Close refuses what waits and all that comes.
func (p *Port) Close() {
	if p.closed.Swap(true) {
		return
	}
	p.node.ports[p.num].CompareAndSwap(p, nil)
	for r, ok := p.pop(); ok; r, ok = p.pop() {
		r.refuse(ErrNoPort)
	}
	signal(p.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// request handles an arrival in a ring; pollMu is held. An error is the end of the peer.
func (n *Node) request(l *link, num int, off uint32, oneWay bool) error {
	in := l.peer.in[num]
	if in == nil {
		return wire.ErrPeer
	}
	h, body, err := in.take(n, off)
	if err != nil {
		return err
	}
	if !oneWay && (h.Room < wire.ReplyLen || !l.peer.holds(h.ReplyTo, uint64(h.Room))) {
		return wire.ErrPeer // the answer would go to other memory than the caller's
	}
	r := &n.arrival
	*r = Request{Payload: body, From: l.peer.id, Priority: h.Priority, OneWay: oneWay, Tag: h.Slot,
		node: n, link: l, ring: in, start: h.Start, to: h.ReplyTo, room: h.Room, slot: h.Slot}
	if p := n.ports[num].Load(); p != nil {
		p.deliver(r)
	} else {
		r.refuse(ErrNoPort)
	}
	return nil
}

// deliver hands a message to the port's handler or queue. The rings bound the queue: what is in it occupies them.
func (p *Port) deliver(r *Request) {
	r.port = p
	if p.handle != nil {
		p.handle(r)
		return
	}
	p.mu.Lock()
	p.queue.Push(r)
	p.mu.Unlock()
	signal(p.wake)
}

func (p *Port) pop() (r Request, ok bool) {
	if p.queue.Len() == 0 {
		return r, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ok = p.queue.Pop(&r)
	return r, ok
}

// TryRecv takes the oldest message, or answers ErrEmpty. It polls the node.
func (p *Port) TryRecv() (Request, error) {
	r, ok := p.pop()
	if !ok {
		p.node.poll()
		r, ok = p.pop()
	}
	switch {
	case ok:
		return r, nil
	case p.closed.Load():
		return r, ErrClosed
	}
	return r, ErrEmpty
}

// Recv takes the oldest message, polling or sleeping; ErrTimeout after d, or ErrClosed.
func (p *Port) Recv(d time.Duration, how Waiting) (Request, error) {
	var start time.Time
	for i := 1; ; i++ {
		r, err := p.TryRecv()
		if err != ErrEmpty {
			return r, err
		}
		if i%128 != 0 && how != WaitSleep {
			continue
		}
		now := time.Now()
		if start.IsZero() {
			start = now
		}
		waited := now.Sub(start)
		switch {
		case waited > d:
			return Request{}, ErrTimeout
		case how == WaitPoll || how == WaitAdaptive && waited < p.node.cfg.Spin:
			p.node.notePolling()
			runtime.Gosched()
			continue
		}
		p.node.SleepUntil(p.wake, d-waited)
	}
}

// SleepUntil sleeps until wake has a token or d is over, for 100 ms at most. The polling goroutine does not pause then.
func (n *Node) SleepUntil(wake <-chan struct{}, d time.Duration) {
	signal(n.kick)
	n.nap(wake, min(d, 100*time.Millisecond))
}

// Release ends a one-way message, or refuses to answer with ErrFail.
func (r *Request) Release() {
	if !r.OneWay {
		r.refuse(ErrFail)
		return
	}
	r.done()
}

func (r *Request) done() {
	if r.ring != nil {
		r.ring.release(r.link.peer, r.start)
	}
}

func (r *Request) refuse(code Code) {
	if r.OneWay {
		r.done()
		return
	}
	_ = r.answer(code, nil) // a caller that left needs no answer
}

// Reply answers with b, which is copied, and ends the request. ErrTooBig, to the caller too, when that has no room.
func (r *Request) Reply(b []byte) error {
	switch {
	case r.OneWay:
		r.done()
		return ErrFail
	case len(b)+wire.ReplyLen > int(r.room):
		if err := r.answer(ErrTooBig, nil); err != nil {
			return err
		}
		return ErrTooBig
	}
	return r.answer(0, b)
}

// ReplyCode answers with bytes and a number above 0, which is the application's; see Client.Finish.
func (r *Request) ReplyCode(code Code, b []byte) error {
	if code <= 0 || len(b)+wire.ReplyLen > int(r.room) {
		return r.answer(ErrTooBig, nil)
	}
	return r.answer(code, b)
}

// ReplyError answers with an error of this package.
func (r *Request) ReplyError(code Code) error { return r.answer(code, nil) }

// answer writes code and b to the caller. It never waits: what finds no room goes out later.
func (r *Request) answer(code Code, b []byte) error {
	if r.link == nil {
		r.node.calls.local(r.node, r.slot, code, b)
		return nil
	}
	l := r.link
	imm := wire.Imm(wire.ImmReply, 0, r.slot)
	h := wire.Reply{Len: uint32(len(b)), Code: int32(code), Slot: r.slot}
	var head [wire.ReplyLen]byte
	h.Put(head[:])
	l.mu.Lock()
	err := l.answer(r.to, imm, head[:], b)
	l.mu.Unlock()
	r.done()
	if int(l.inUse.Load()) > l.depth/2 {
		l.poll() // nothing waits for these completions
	}
	return err
}

// answer posts a reply, now or later; l.mu is held.
func (l *link) answer(to uint64, imm uint32, head, b []byte) error {
	if l.broken.Load() {
		return ErrPeerDead
	}
	err := error(rdma.ErrQueueFull)
	if len(l.backlog) == 0 {
		if len(b)+len(head) <= stageLen {
			err = l.message(to, imm, head, b, 0, 0)
		} else {
			l.poll() // what was sent gives its memory back
			err = l.copied(to, imm, head, b)
		}
	}
	if err == nil || err == ErrPeerDead {
		return err
	}
	l.deferWrite(deferred{remote: to, imm: imm, notify: true, data: append(append([]byte(nil), head...), b...)})
	return nil
}

// copied is message for a long body that is not the arena's, or that the caller wants back at once; l.mu is held.
func (l *link) copied(remote uint64, imm uint32, head, body []byte) error {
	off, b, err := l.node.copyOf(body)
	if err != nil {
		return err
	}
	if err = l.message(remote, imm, head, b, rdma.Signaled, idFree<<idKindShift|off/64); err != nil {
		l.node.free(off)
	}
	return err
}

// Queue is a list that grows: who comes first is taken first. Its owner's lock guards Push and Pop.
type Queue[T any] struct {
	all          []T // ring
	first, count int
	queued       atomic.Int32 // = count
}

// Len is how many there are. It needs no lock.
func (q *Queue[T]) Len() int { return int(q.queued.Load()) }

// Push adds one.
func (q *Queue[T]) Push(v *T) {
	if q.count == len(q.all) {
		grown := make([]T, max(2*q.count, 64))
		n := copy(grown, q.all[q.first:])
		copy(grown[n:], q.all[:q.first])
		q.all, q.first = grown, 0
	}
	q.all[(q.first+q.count)%len(q.all)] = *v
	q.count++
	q.queued.Store(int32(q.count))
}

// Pop takes the oldest, if there is one.
func (q *Queue[T]) Pop(v *T) bool {
	if q.count == 0 {
		return false
	}
	var none T
	*v, q.all[q.first] = q.all[q.first], none
	q.first = (q.first + 1) % len(q.all)
	q.count--
	q.queued.Store(int32(q.count))
	return true
}
