//go:build lwip && cgo

package lwip

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// poller looks at the connections that it watches. Its sleeper is woken by whoever
// drives the stack.
type poller struct {
	s     *core
	woken atomic.Bool
	wake  chan struct{}

	mu     sync.Mutex
	regs   []reg
	turn   int // where the next look begins, so that all get theirs
	closed bool
}

type reg struct {
	c     *conn
	tag   uint64
	bits  uint32
	armed bool
}

func newPoller(s *core) *poller { return &poller{s: s, wake: make(chan struct{}, 1)} }

func (p *poller) poke() {
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
	r.c.watched(by)
}

func (p *poller) Add(sc stream.Conn, tag uint64, bits uint32) error {
	c := sc.(*conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	c.mu.Lock()
	c.pollers = append(c.pollers, p)
	c.mu.Unlock()
	p.regs = append(p.regs, reg{c: c, tag: tag, bits: bits})
	p.regs[len(p.regs)-1].arm(true)
	p.poke()
	return nil
}

func (p *poller) Modify(sc stream.Conn, tag uint64, bits uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	for i := range p.regs {
		if r := &p.regs[i]; r.c == sc {
			r.tag, r.bits = tag, bits
			r.arm(true)
			p.poke()
			return nil
		}
	}
	return os.ErrNotExist
}

func (p *poller) Remove(sc stream.Conn) error {
	c := sc.(*conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.regs, func(r reg) bool { return r.c == c })
	if i < 0 {
		return os.ErrNotExist
	}
	p.regs[i].arm(false)
	p.regs = slices.Delete(p.regs, i, i+1)
	c.mu.Lock()
	if k := slices.Index(c.pollers, p); k >= 0 {
		c.pollers = slices.Delete(c.pollers, k, k+1)
	}
	c.mu.Unlock()
	return nil
}

// look fills dst with what is ready.
func (p *poller) look(dst []stream.Event) int {
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
		if bits := r.c.bits() & (r.bits | stream.Failed); bits != 0 {
			dst[n] = stream.Event{Tag: r.tag, Bits: bits}
			n++
			if r.bits&stream.OneShot != 0 {
				r.arm(false)
			}
		}
	}
	return n
}

func (p *poller) Wait(dst []stream.Event, ms int) (int, error) {
	p.s.drive()
	n := p.look(dst)
	if n > 0 || ms == 0 || p.woken.Swap(false) {
		return n, nil
	}
	p.s.settle()
	var late <-chan time.Time
	if ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		late = t.C
	}
	for {
		p.s.wakeDriver()
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

func (p *poller) Ready(dst []stream.Event) int {
	p.s.drive()
	return p.look(dst[:min(len(dst), 16)])
}

func (p *poller) Wake() {
	p.woken.Store(true)
	p.poke()
}

func (p *poller) Close() error {
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
