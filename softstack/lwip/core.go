//go:build lwip && cgo

package lwip

/*
#cgo CFLAGS: -O2 -Wall -I/usr/include/lwip
#cgo LDFLAGS: -ldl -Wl,-E
#include "lw.h"
#ifdef LW_STATIC
enum { lw_static = 1 };
#else
enum { lw_static = 0 };
#endif

#cgo noescape lw_turn
#cgo nocallback lw_turn
#cgo noescape lw_sendv
#cgo nocallback lw_sendv
#cgo noescape lw_sendv_ref
#cgo nocallback lw_sendv_ref
#cgo noescape lw_send
#cgo nocallback lw_send
*/
import "C"

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// In says how lwIP is in this program.
func In() string {
	if C.lw_static != 0 {
		return "lwIP (static)"
	}
	return "lwIP (liblwip.so.0, when it is used)"
}

const (
	// turnFrames bounds what one turn takes from each link, so that a flood does not keep a poller.
	turnFrames = 64
	// idleLooks that find nothing acknowledge what was received: an answer until then carries that with it.
	idleLooks = 64
	// driverTick is how soon the driver notices that nobody polls any more.
	driverTick = 10 * time.Millisecond
	// busyLooks since the driver's last look mean that somebody spins: bells would cost the peer a system call a
	// message. A sleeper that was woken does a few.
	busyLooks = 64
	// idleTick is how often it looks while it sleeps, for what lwIP's timers did.
	idleTick = 100 * time.Millisecond
	// linkGrace is how long a link without connections stays, for their last segments.
	linkGrace = time.Second
	// orphanGrace is how long it stays for what a closed connection has sent, as Linux has it (tcp_orphan_retries of
	// tcp(7)).
	orphanGrace = 100 * time.Second
)

// core is the stack of the process.
type core struct {
	conns [C.LW_MAX_CONNS]atomic.Pointer[conn]
	seen  atomic.Pointer[[]*C.struct_lw_link] // of all links, for looks without a lock

	dirty, events *uint32 // in C
	polls         atomic.Uint32
	watchers      atomic.Int32 // sleepers and armed registrations

	mu        sync.Mutex
	links     []*link
	listeners map[uint32]*listener
	nextID    uint32

	ifMu   sync.Mutex
	ifaces map[string]*xdp // by name

	stacks []*Stack // all that were opened: few, and their counts stay

	kick    chan struct{}
	running bool

	// Of the packet thread.
	help    chan struct{}
	helping bool
	dozing  atomic.Bool
	yields  atomic.Uint64 // of applications that wait for it
}

var (
	once    sync.Once
	onceErr error
	stack   *core
)

// open starts lwIP, once.
func open() (*core, error) {
	once.Do(func() {
		var unlike C.int
		if why := C.lw_load(&unlike); why != nil && unlike != 0 {
			onceErr = fmt.Errorf("%w: %s", ErrUnlike, C.GoString(why))
			return
		} else if why != nil {
			onceErr = fmt.Errorf("%w: %s (apt-get install liblwip0)", ErrAbsent, C.GoString(why))
			return
		}
		if e := C.lw_start(); e != 0 {
			onceErr = fmt.Errorf("start lwip: %w", syscall.Errno(-e))
			return
		}
		if onceErr = limits(ownLimits()); onceErr != nil {
			return
		}
		stack = &core{
			listeners: map[uint32]*listener{}, ifaces: map[string]*xdp{}, kick: make(chan struct{}, 1),
			help:  make(chan struct{}, 1),
			dirty: (*uint32)(unsafe.Pointer(&C.lw_dirty)), events: (*uint32)(unsafe.Pointer(&C.lw_events)),
		}
		stack.seen.Store(&[]*C.struct_lw_link{})
	})
	return stack, onceErr
}

// limits reports whether the library's segments and send buffers are those of the headers.
func limits(mss, buffer int) error {
	if why := C.lw_limits_unlike(C.int(mss), C.ulong(buffer)); why != nil {
		return fmt.Errorf("%w: %s", ErrUnlike, C.GoString(why))
	}
	return nil
}

func ownLimits() (mss, buffer int) { return C.TCP_MSS, C.TCP_SND_BUF }

// pending reports whether a turn would find something.
func (s *core) pending() bool {
	for _, l := range *s.seen.Load() {
		// The pointer moves once, when the link ends.
		head := (*uint32)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&l.rx_head))))
		if atomic.LoadUint32(head) != atomic.LoadUint32((*uint32)(unsafe.Pointer(&l.rx_tail))) {
			return true
		}
		if atomic.LoadUint32((*uint32)(unsafe.Pointer(&l.waiting))) != 0 {
			return true
		}
	}
	return atomic.LoadUint32(s.events) != 0
}

// Drive makes progress if there is any to make.
func (s *core) Drive() {
	s.polls.Store(s.polls.Load() + 1) // of two at once one may be lost: it only has to move
	if s.pending() {
		s.turn(0)
	}
}

// look is Drive for the idle-th look in a row: of those in vain the driver is told one in eight.
func (s *core) look(idle int) {
	if s.pending() {
		s.polls.Store(s.polls.Load() + 1)
		s.turn(0)
	} else if idle&7 == 7 {
		s.polls.Store(s.polls.Load() + 8)
	}
}

// Settle acknowledges what was received and is not answered.
func (s *core) Settle() {
	if atomic.LoadUint32(s.dirty) != 0 {
		s.turn(1)
	}
}

func (s *core) turn(settle C.int) {
	var ev [32]uint32
	n := C.lw_turn(turnFrames, settle, (*C.uint32_t)(unsafe.Pointer(&ev[0])), C.int(len(ev)))
	s.report(ev[:n])
}

func (s *core) report(ev []uint32) {
	for _, e := range ev {
		if e&C.LW_ACCEPTED != 0 {
			s.accepted(e &^ C.LW_ACCEPTED)
		} else if c := s.conns[e].Load(); c != nil {
			c.notify()
		}
	}
}

// WakeDriver makes the driver look, and ask for bells if nobody polls.
func (s *core) WakeDriver() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// start runs the driver while there are links or listeners. s.mu is held.
func (s *core) start() {
	if !s.running {
		s.running = true
		go s.run()
	}
}

// run is the driver: it polls when nobody else does, and sleeps when nothing comes.
func (s *core) run() {
	tick := time.NewTimer(driverTick)
	defer tick.Stop()
	last, asleep := s.polls.Load(), false
	for {
		late := false
		select {
		case <-s.kick:
		case <-tick.C:
			late = true
		}
		moved := s.polls.Load() - last
		idle := moved == 0 || moved < busyLooks && (late || s.watchers.Load() > 0)
		if idle {
			for range 64 { // bounded, so that a flood does not keep links from ending
				if !s.pending() {
					break
				}
				s.turn(0)
			}
			s.Settle()
			asleep = C.lw_sleep(0) == 0
			if !asleep {
				s.WakeDriver()
			} else {
				s.sleepOnInterfaces()
			}
		} else {
			asleep = false
		}
		last = s.polls.Load()
		if !s.tidy(time.Now()) {
			return
		}
		if asleep {
			tick.Reset(idleTick)
		} else {
			tick.Reset(driverTick)
		}
	}
}

// sleepOnInterfaces has somebody wait for what comes through sockets.
func (s *core) sleepOnInterfaces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		if l.x != nil {
			l.x.askToSleep()
		}
	}
}

// tidy ends links that are not used or whose other side is gone. False: nothing is left to drive.
func (s *core) tidy(now time.Time) bool {
	end, more := s.sort(now)
	for _, l := range end {
		l.end()
	}
	return more
}

func (s *core) sort(now time.Time) (end []*link, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := s.links[:0]
	for _, l := range s.links {
		if l.spent(now) {
			end = append(end, l)
		} else {
			keep = append(keep, l)
		}
	}
	if len(end) > 0 {
		clear(s.links[len(keep):])
		s.links = keep
		s.publish()
		s.wakeHelper() // it ends when no link needs it
	}
	if len(s.links)+len(s.listeners) == 0 {
		s.running = false
	}
	return end, s.running
}

// publish makes the links known to looks. s.mu is held.
func (s *core) publish() {
	all := make([]*C.struct_lw_link, 0, len(s.links))
	for _, l := range s.links {
		if l.c.mode == C.LW_INLINE { // the others have a thread
			all = append(all, l.c)
		}
	}
	s.seen.Store(&all)
}

func (s *core) enter(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, l)
	s.publish()
	s.start()
	if l.c.mode != C.LW_INLINE {
		s.startHelper()
	}
}

// reuse finds a living link that f wants, and keeps it from ending.
func (s *core) reuse(f func(*link) bool) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.links, func(l *link) bool { return !l.gone.Load() && f(l) })
	if i < 0 {
		return nil
	}
	s.links[i].pins++
	return s.links[i]
}

func (s *core) pin(l *link) {
	s.mu.Lock()
	l.pins++
	s.mu.Unlock()
}

func (s *core) unpin(l *link) {
	s.mu.Lock()
	l.pins--
	s.mu.Unlock()
}

func (s *core) accepted(id uint32) {
	cc := (*[C.LW_MAX_CONNS]*C.struct_lw_conn)(unsafe.Pointer(&C.lw_conns))[id]
	if cc == nil {
		return
	}
	s.mu.Lock()
	l := s.listeners[uint32(cc.listener)]
	s.mu.Unlock()
	c := newConn(s, cc)
	if l == nil || !l.offer(c) {
		c.Abort()
	}
}
