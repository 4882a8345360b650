package ready

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Stack is what a poller needs of the stack of its connections.
type Stack interface {
	// Drive makes progress if there is any to make, and never blocks.
	Drive()
	// Settle answers what was received and is not answered: somebody is about to sleep.
	Settle()
	// WakeDriver makes whoever drives the stack for sleepers look.
	WakeDriver()
}

// Conn is a connection that can be watched.
type Conn interface {
	stream.Conn
	// Bits is what it is ready for now.
	Bits() uint32
	// Watched counts a watcher in (1) or out (-1). While there are any, the stack calls
	// Poke of the pollers that joined when the connection moves.
	Watched(by int32)
	Join(p *Poller)
	Part(p *Poller)
}

// Poller looks at the connections that it watches. Its sleeper is woken by whoever drives the stack.
type Poller struct {
	s     Stack
	woken atomic.Bool
	wake  chan struct{}

	mu     sync.Mutex
	regs   []reg
	turn   int // where the next look begins, so that all get theirs
	closed bool
}

type reg struct {
	c     Conn
	tag   uint64
	bits  uint32
	armed bool
}

// New makes a poller of connections of s.
func New(s Stack) *Poller { return &Poller{s: s, wake: make(chan struct{}, 1)} }

// Poke wakes its sleeper: a connection moved.
func (p *Poller) Poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// arm changes one registration; its connection reports while armed ones watch it. p.mu is held.
func (r *reg) arm(on bool) {
	if r.armed == on {
		return
	}
	r.armed = on
	by := int32(-1)
	if on {
		by = 1
	}
	r.c.Watched(by)
}

func (p *Poller) Add(sc stream.Conn, tag uint64, bits uint32) error {
	c := sc.(Conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	c.Join(p)
	p.regs = append(p.regs, reg{c: c, tag: tag, bits: bits})
	p.regs[len(p.regs)-1].arm(true)
	p.Poke()
	return nil
}

func (p *Poller) Modify(sc stream.Conn, tag uint64, bits uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	for i := range p.regs {
		if r := &p.regs[i]; r.c == sc {
			r.tag, r.bits = tag, bits
			r.arm(true)
			p.Poke()
			return nil
		}
	}
	return os.ErrNotExist
}

func (p *Poller) Remove(sc stream.Conn) error {
	c := sc.(Conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.regs, func(r reg) bool { return r.c == c })
	if i < 0 {
		return os.ErrNotExist
	}
	p.regs[i].arm(false)
	p.regs = slices.Delete(p.regs, i, i+1)
	c.Part(p)
	return nil
}

// look fills dst with what is ready.
func (p *Poller) look(dst []stream.Event) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for range p.regs {
		if n == len(dst) {
			break
		}
		p.turn = (p.turn + 1) % len(p.regs)
		r := &p.regs[p.turn]
		if !r.armed {
			continue
		}
		if bits := r.c.Bits() & (r.bits | stream.Failed); bits != 0 {
			dst[n] = stream.Event{Tag: r.tag, Bits: bits}
			n++
			if r.bits&stream.OneShot != 0 {
				r.arm(false)
			}
		}
	}
	return n
}

func (p *Poller) Wait(dst []stream.Event, ms int, _ bool) (int, error) {
	p.s.Drive()
	n := p.look(dst)
	if n > 0 || ms == 0 || p.woken.Swap(false) {
		return n, nil
	}
	p.s.Settle()
	var late <-chan time.Time
	if ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		late = t.C
	}
	for {
		p.s.WakeDriver()
		select {
		case <-p.wake:
		case <-late:
			return p.look(dst), nil
		}
		if n := p.look(dst); n > 0 || p.woken.Swap(false) {
			return n, nil
		}
	}
}

func (p *Poller) Ready(dst []stream.Event) int {
	p.s.Drive()
	return p.look(dst[:min(len(dst), 16)])
}

func (p *Poller) Wake() {
	p.woken.Store(true)
	p.Poke()
}

func (p *Poller) Close() error {
	p.mu.Lock()
	regs := slices.Clone(p.regs)
	p.mu.Unlock()
	for _, r := range regs {
		p.Remove(r.c)
	}
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return nil
}
