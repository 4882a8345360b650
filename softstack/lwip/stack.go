//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/softstack/ready"
	"github.com/rdmaperf/rdmaperf/softstack/shm"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Stack is the process's lwIP with links of one kind.
type Stack struct {
	cfg  Config
	core *core

	mu    sync.Mutex
	ended Counts // of links that ended
}

var (
	_ stream.Stack    = (*Stack)(nil)
	_ stream.Referrer = (*conn)(nil)
)

// Open makes a stack. It holds nothing until it dials or listens. Errors: ErrAbsent, and what is wrong with cfg.
func Open(cfg Config) (*Stack, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Link == LinkXDP && os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: link=xdp needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF)", ErrRights)
	}
	if cfg.Iface != "" {
		if _, err := net.InterfaceByName(cfg.Iface); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRights, cfg.Iface, err)
		}
	}
	c, err := open()
	if err != nil {
		return nil, err
	}
	if cfg.ByReference && C.lw_references() == 0 {
		return nil, fmt.Errorf("%w (LWIP_NETIF_TX_SINGLE_PBUF, as Debian builds it): ci/build-lwip DIR builds one "+
			"that does not", ErrCopies)
	}
	s := &Stack{cfg: cfg, core: c}
	c.mu.Lock()
	c.stacks = append(c.stacks, s)
	c.mu.Unlock()
	return s, nil
}

// Name is raw or sequential, after lwIP's APIs, and what departs from the default.
func (s *Stack) Name() string {
	if s.cfg.Sequential {
		return "stack=sequential," + s.cfg.Params()
	}
	return "stack=raw," + s.cfg.Params()
}

// mode is who runs the stack for the links of s.
func (s *Stack) mode() C.int {
	switch {
	case s.cfg.Sequential:
		return C.LW_SEQUENTIAL
	case s.cfg.Threads == C1:
		return C.LW_IO
	}
	return C.LW_INLINE
}

// InPlace is true: packets lie in the ring, or in a buffer of lwIP's, until they are skipped.
func (s *Stack) InPlace() bool { return true }

// References tells that connections send by reference what they are told to: [stream.Referrer].
func (s *Stack) References() bool { return s.cfg.ByReference }

// NewPoller makes a poller; both kinds are the same, as nothing here blocks a thread.
func (s *Stack) NewPoller() (stream.Poller, error) { return ready.New(s.core), nil }

// Counts adds up the stack's links.
func (s *Stack) Counts() Counts {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	s.mu.Lock()
	sum := s.ended
	s.mu.Unlock()
	for _, l := range s.core.links {
		if l.stack == s {
			sum.add(l.counts())
		}
	}
	sum.TxReferenced = uint64(atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.lw_tx_referenced))))
	sum.TxCopied = uint64(atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.lw_tx_copied))))
	sum.Yields = uint64(atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.lw_yields)))) + s.core.yields.Load()
	sum.Thread = atomic.LoadUint64((*uint64)(unsafe.Pointer(&C.lw_thread_ns)))
	return sum
}

// Totals are the counts of all stacks of the process.
func Totals() Counts {
	if stack == nil {
		return Counts{}
	}
	var sum Counts
	stack.mu.Lock()
	stacks := slices.Clone(stack.stacks)
	stack.mu.Unlock()
	for _, s := range stacks {
		n := s.Counts()
		sum.add(n)
		sum.TxCopied, sum.TxReferenced, sum.Yields, sum.Thread = n.TxCopied, n.TxReferenced, n.Yields, n.Thread
	}
	return sum
}

func (s *Stack) add(n Counts) {
	s.mu.Lock()
	s.ended.add(n)
	s.mu.Unlock()
}

func (c *Counts) add(n Counts) {
	c.TxFrames += n.TxFrames
	c.TxOctets += n.TxOctets
	c.TxDropped += n.TxDropped
	c.RxFrames += n.RxFrames
	c.RxOctets += n.RxOctets
	c.RxCopied += n.RxCopied
	c.RxMissed += n.RxMissed
	c.Lost += n.Lost
	c.Duplicated += n.Duplicated
	c.Reordered += n.Reordered
	c.Delayed += n.Delayed
	c.Bells += n.Bells
	c.Refused += n.Refused
}

// startupSlice bounds one sleep, so that a deadline that moves is seen.
const startupSlice = 100 // ms

// connectWithin bounds a dial whose context has no deadline.
const connectWithin = 10 * time.Second

// Dial connects to the process that listens at addr.
func (s *Stack) Dial(ctx context.Context, addr string, _ stream.Buffers) (stream.Opening, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	if s.cfg.Link == LinkXDP {
		return s.dialOut(ctx, addr)
	}
	host, port, n, err := shm.Target(addr)
	if err != nil {
		return nil, err
	}
	six := shm.Six(host)
	l := s.core.reuse(func(l *link) bool { return l.stack == s && l.port == port })
	for fresh := false; ; fresh = true {
		if l == nil {
			if l, err = knock(ctx, s, port); err != nil {
				return nil, err
			}
			s.core.pin(l)
			fresh = true
		}
		o, err := s.connect(ctx, l, six, n)
		s.core.unpin(l)
		// A link that was idle may have ended at the other side a moment ago.
		if err != nil && !fresh && l.gone.Load() {
			l = nil
			continue
		}
		return o, err
	}
}

func (s *Stack) connect(ctx context.Context, l *link, six bool, port uint16) (stream.Opening, error) {
	c, err := s.dialLink(ctx, l, 0, six, 0, port)
	if err != nil {
		return nil, err
	}
	return ready.NewOpening(c, c.nudge), nil
}

func (s *Stack) dialOut(ctx context.Context, addr string) (stream.Opening, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q", port)
	}
	x, ip, err := s.through(host)
	if err != nil {
		return nil, err
	}
	c, err := x.connect(ctx, s, ip, uint16(n))
	if err != nil {
		return nil, err
	}
	return ready.NewOpening(c, c.nudge), nil
}

// dialLink connects to a peer of a link over IPv4 or IPv6, from a local port or 0 for any.
func (s *Stack) dialLink(ctx context.Context, l *link, peer int, six bool, local, port uint16) (*conn, error) {
	var e, v6 C.int
	if six {
		v6 = 1
	}
	cc := C.lw_connect(l.c, C.int(peer), v6, C.uint16_t(local), C.uint16_t(port), &e)
	if cc == nil {
		return nil, os.NewSyscallError("connect", syscall.Errno(-e))
	}
	c := newConn(s.core, cc)
	s.core.watchers.Add(1)
	defer c.watched(-1) // lw_connect counted one, so that no event is missed
	stop := context.AfterFunc(ctx, c.notify)
	defer stop()
	for {
		switch st := atomic.LoadUint32(c.state); {
		case st&C.LW_DEAD != 0:
			err := syscall.Errno(cc.err)
			if err == syscall.ECONNRESET {
				err = syscall.ECONNREFUSED // RFC 9293 §3.10.7.3: RST answers the SYN
			}
			c.Abort()
			return nil, os.NewSyscallError("connect", err)
		case st&C.LW_CONNECTED != 0:
			return c, nil
		}
		if err := ctx.Err(); err != nil {
			c.Abort()
			return nil, err
		}
		c.Await(stream.Writable, startupSlice)
	}
}

// Listen takes connections of processes on this machine, whatever host they name.
func (s *Stack) Listen(_ context.Context, addr string, _ stream.Buffers) (stream.Listener, error) {
	var x *xdp
	host, port, n, err := "", "", uint16(0), error(nil)
	if s.cfg.Link == LinkXDP {
		if host, port, err = net.SplitHostPort(addr); err == nil {
			var v uint64
			v, err = strconv.ParseUint(port, 10, 16)
			n = uint16(v)
		}
		if err == nil {
			x, _, err = s.through(host)
		}
	} else {
		host, port, n, err = shm.Target(addr)
	}
	if err != nil {
		return nil, err
	}
	for range 64 { // a free port is found at once
		if n != 0 {
			return s.listen(host, port, n, x)
		}
		free := 1024 + rand.N(uint16(64000)) // nobody else's: not the kernel's ports
		l, err := s.listen(host, strconv.Itoa(int(free)), free, x)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return nil, syscall.EADDRINUSE
}

func (s *Stack) listen(host, port string, n uint16, x *xdp) (stream.Listener, error) {
	var door *shm.Listener
	if x == nil {
		var err error
		if door, err = family.Listen(port); err != nil {
			return nil, err
		}
	}
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextID++
	l := &listener{s: s, door: door, x: x, port: n, id: c.nextID, addr: net.JoinHostPort(host, port),
		queue: make(chan *conn, listenQueue), done: make(chan struct{})}
	if e := C.lw_listen(C.uint16_t(n), C.uint32_t(l.id), &l.pcb); e != 0 {
		if door != nil {
			door.Close()
		}
		return nil, fmt.Errorf("listen at port %s of lwip: %w", port, syscall.Errno(-e))
	}
	if x != nil {
		if err := x.open(n); err != nil {
			C.lw_unlisten(l.pcb)
			return nil, &XDPError{"open port " + port, x.name, err}
		}
	}
	c.listeners[l.id] = l
	c.start()
	if door != nil {
		door.Serve(s.admit)
	}
	return l, nil
}

// listenQueue bounds connections that wait for Accept.
const listenQueue = 128

type listener struct {
	s     *Stack
	door  *shm.Listener // of link=shm
	x     *xdp          // of link=xdp
	port  uint16
	pcb   unsafe.Pointer
	id    uint32
	addr  string
	queue chan *conn
	done  chan struct{}
	once  sync.Once
}

func (l *listener) offer(c *conn) bool {
	select {
	case <-l.done:
		return false
	default:
	}
	select {
	case l.queue <- c:
		return true
	default:
		return false
	}
}

func (l *listener) Accept() (stream.Opening, error) {
	select {
	case c := <-l.queue:
		return ready.NewOpening(c, c.nudge), nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		if l.door != nil {
			l.door.Close()
		}
		C.lw_unlisten(l.pcb)
		c := l.s.core
		c.mu.Lock()
		delete(c.listeners, l.id)
		c.mu.Unlock()
		for {
			select {
			case c := <-l.queue:
				c.Abort()
				continue
			default:
			}
			break
		}
		c.WakeDriver()
	})
	return nil
}
