//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/softstack/ready"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// conn is one connection. The words of cc that Go reads and writes without a call are named in lw.h.
type conn struct {
	s      *core
	cc     *C.struct_lw_conn
	tail   *uint32
	head   *uint32
	state  *uint32
	room   *uint32
	watch  *uint32
	helped bool // the stack has a thread
	sends  *C.struct_lw_sends
	at     uint32 // = *head
	off    int    // octets of the piece at head that are consumed
	idle   int    // looks in a row that found nothing
	remote string
	taken  uint64 // octets that the stack took, or its slots did

	mu      sync.Mutex
	pollers []*ready.Poller
	wake    chan struct{} // a sleeper in Await or start-up
	closed  atomic.Bool
	onEnd   func()       // of a connection through an interface
	life    sync.RWMutex // held while a sleeper looks, and when cc is freed
}

func newConn(s *core, cc *C.struct_lw_conn) *conn {
	c := &conn{
		s: s, cc: cc, wake: make(chan struct{}, 1),
		tail: (*uint32)(unsafe.Pointer(&cc.tail)), head: (*uint32)(unsafe.Pointer(&cc.head)),
		state: (*uint32)(unsafe.Pointer(&cc.state)), room: (*uint32)(unsafe.Pointer(&cc.room)),
		watch:  (*uint32)(unsafe.Pointer(&cc.watch)),
		helped: cc.mode != C.LW_INLINE, sends: cc.sends,
		remote: remoteOf(cc),
	}
	s.conns[cc.id].Store(c)
	return c
}

// remoteOf is the address of the peer, which over shared memory is on this machine.
func remoteOf(cc *C.struct_lw_conn) string {
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if cc.v6 != 0 {
		at = netip.IPv6Loopback()
	}
	if real := C.lw_peer_ip(cc.link, C.int(cc.peer)); real != 0 {
		var ip [4]byte
		binary.NativeEndian.PutUint32(ip[:], uint32(real))
		at = netip.AddrFrom4(ip)
	}
	return netip.AddrPortFrom(at, uint16(cc.remote_port)).String()
}

// piece is what is left of the oldest received piece, or nil.
func (c *conn) piece() []byte {
	if atomic.LoadUint32(c.tail) == c.at {
		return nil
	}
	d := &c.cc.ring[c.at%C.LW_DESCS]
	return unsafe.Slice((*byte)(unsafe.Pointer(d.data)), int(d.len))[c.off:]
}

func (c *conn) skip(n int) {
	d := &c.cc.ring[c.at%C.LW_DESCS]
	if c.off += n; c.off == int(d.len) {
		c.off = 0
		c.at++
		atomic.StoreUint32(c.head, c.at)
	}
}

// Peek is the oldest piece where it lies, after driving the stack if there is none.
func (c *conn) Peek() ([]byte, error) {
	b := c.piece()
	if b == nil {
		if c.closed.Load() {
			return nil, syscall.EBADF
		}
		if c.helped {
			c.await()
		} else {
			c.s.look(c.idle)
		}
		if b = c.piece(); b == nil {
			return nil, c.nothing()
		}
	}
	c.idle = 0
	return b, nil
}

// nothing says why there are no octets: the state may have changed behind octets that came with it.
func (c *conn) nothing() error {
	st := atomic.LoadUint32(c.state)
	if st&(C.LW_EOF|C.LW_DEAD) != 0 && c.piece() == nil {
		if st&C.LW_EOF != 0 {
			return io.EOF
		}
		return syscall.Errno(c.cc.err)
	}
	if c.helped {
		return stream.ErrAgain
	}
	if c.idle++; c.idle == idleLooks {
		c.s.Settle()
	}
	return stream.ErrAgain
}

func (c *conn) Recv(b []byte) (int, error) { return c.Recv2(b, nil) }

func (c *conn) Recv2(a, b []byte) (int, error) {
	p, err := c.Peek()
	if err != nil {
		return 0, err
	}
	n := 0
	for p != nil {
		k := copy(a, p)
		if k == 0 {
			if len(b) == 0 {
				break
			}
			a, b = b, nil
			continue
		}
		a = a[k:]
		n += k
		c.skip(k)
		p = c.piece()
	}
	return n, nil
}

// Skip consumes n octets of what Peek showed, and reports whether another piece has come.
func (c *conn) Skip(n int) bool {
	c.skip(n)
	return c.off > 0 || atomic.LoadUint32(c.tail) != c.at
}

func (c *conn) Send(b []byte) (int, error) {
	if !c.hasRoom() {
		return 0, c.blocked()
	}
	n := C.lw_send(c.cc, C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), C.size_t(len(b)))
	runtime.KeepAlive(b)
	return c.took(n)
}

// Sendv passes addresses as numbers: memory does not move, and lwIP copies it before the call returns.
func (c *conn) Sendv(v []unix.Iovec) (int, error) {
	if !c.hasRoom() {
		return 0, c.blocked()
	}
	n := C.lw_sendv(c.cc, C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(v)))), C.int(len(v)))
	runtime.KeepAlive(v)
	return c.took(n)
}

// SendvRef is Sendv that copies pieces within own alone; the others are registered memory.
func (c *conn) SendvRef(v []unix.Iovec, own []byte) (int, error) {
	if !c.hasRoom() {
		return 0, c.blocked()
	}
	n := C.lw_sendv_ref(c.cc, C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(v)))), C.int(len(v)),
		C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(own)))), C.size_t(len(own)))
	runtime.KeepAlive(v)
	runtime.KeepAlive(own)
	return c.took(n)
}

// Detach has the stack copy what it still references.
func (c *conn) Detach() {
	if !c.closed.Load() {
		C.lw_detach(c.cc)
	}
}

// blocked says why nothing can be sent, after a look: who only sends must see acknowledgements too.
func (c *conn) blocked() error {
	if c.closed.Load() {
		return syscall.EBADF
	}
	if st := atomic.LoadUint32(c.state); st&C.LW_DEAD != 0 {
		return syscall.Errno(c.cc.err)
	}
	if c.helped {
		c.await()
	} else {
		c.s.Drive()
	}
	return stream.ErrAgain
}

// hasRoom reports whether a send would take anything.
func (c *conn) hasRoom() bool {
	if c.sends == nil {
		return atomic.LoadUint32(c.room) != 0
	}
	const connected = C.LW_CONNECTED | C.LW_DEAD
	return atomic.LoadUint32(c.state)&connected == C.LW_CONNECTED &&
		atomic.LoadUint32((*uint32)(unsafe.Pointer(&c.sends.tail)))-atomic.LoadUint32(
			(*uint32)(unsafe.Pointer(&c.sends.head))) < C.LW_SENDS
}

func (c *conn) took(n C.long) (int, error) {
	if c.helped && c.s.dozing.Load() {
		c.s.wakeHelper()
	}
	if n >= 0 {
		c.taken += uint64(n)
		return int(n), nil
	}
	if e := syscall.Errno(-n); e != syscall.EAGAIN {
		return 0, e
	}
	return 0, stream.ErrAgain
}

func (c *conn) MSS() int { return int(c.cc.mss) }

func (c *conn) Unsent() (int, error) { return int(C.lw_unsent(c.cc)), nil }

func (c *conn) Unacked() (int, error) {
	if !c.helped {
		c.s.Drive()
	}
	return int(c.taken - atomic.LoadUint64((*uint64)(unsafe.Pointer(&c.cc.acked)))), nil
}

func (c *conn) RemoteAddr() string { return c.remote }

// Bits is what the connection is ready for.
func (c *conn) Bits() uint32 {
	if c.closed.Load() {
		return 0
	}
	var b uint32
	st := atomic.LoadUint32(c.state)
	if st&(C.LW_EOF|C.LW_DEAD) != 0 || atomic.LoadUint32(c.tail) != atomic.LoadUint32(c.head) {
		b |= stream.Readable
	}
	if st&C.LW_DEAD != 0 {
		b |= stream.Writable | stream.Failed
	}
	if c.hasRoom() {
		b |= stream.Writable
	}
	return b
}

// Watched counts a watcher of a poller in or out.
func (c *conn) Watched(by int32) { c.watched(by) }

// Join has p poked when the connection moves.
func (c *conn) Join(p *ready.Poller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pollers = append(c.pollers, p)
}

// Part ends that.
func (c *conn) Part(p *ready.Poller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.pollers, p); i >= 0 {
		c.pollers = slices.Delete(c.pollers, i, i+1)
	}
}

func (c *conn) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *conn) notify() {
	c.nudge()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pollers {
		p.Poke()
	}
}

// Parks is false: the runtime does not know of what arrives.
func (c *conn) Parks() bool            { return false }
func (c *conn) Park(func() bool) error { return errors.ErrUnsupported }
func (c *conn) Unpark()                {}

// Await sleeps in slices, as a signal for another sleeper may be taken from it.
func (c *conn) Await(bits uint32, ms int) {
	c.s.Drive()
	if c.ready(bits) || ms <= 0 {
		return
	}
	c.s.Settle()
	defer c.watched(-1)
	if !c.watched(1) {
		return
	}
	if c.ready(bits) {
		return
	}
	c.s.WakeDriver()
	if c.helped {
		c.s.wakeHelper()
	}
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-c.wake:
	case <-t.C:
	}
}

// watched counts a sleeper in (1) or out (-1); false: the connection was closed under it.
func (c *conn) watched(by int32) bool {
	c.s.watchers.Add(by)
	c.life.RLock()
	defer c.life.RUnlock()
	if !c.closed.Load() {
		atomic.AddUint32(c.watch, uint32(by))
		return true
	}
	return false
}

func (c *conn) ready(bits uint32) bool {
	c.life.RLock()
	defer c.life.RUnlock()
	return c.closed.Load() || c.Bits()&(bits|stream.Failed) != 0
}

func (c *conn) CloseWrite() error {
	if c.closed.Load() {
		return nil
	}
	if e := C.lw_shut(c.cc); e != 0 {
		return syscall.Errno(-e)
	}
	return nil
}

func (c *conn) Close() error { return c.end(0) }

func (c *conn) Abort() error { return c.end(1) }

func (c *conn) end(abort C.int) error {
	c.life.Lock()
	was := c.closed.Swap(true)
	c.life.Unlock()
	if was {
		return nil
	}
	c.mu.Lock()
	pollers := slices.Clone(c.pollers)
	c.mu.Unlock()
	for _, p := range pollers {
		p.Remove(c)
	}
	c.s.conns[c.cc.id].Store(nil)
	C.lw_free(c.cc, abort)
	if c.helped {
		c.s.wakeHelper()
	}
	if c.onEnd != nil {
		c.onEnd()
	}
	c.s.WakeDriver() // the peer's answers to the end need somebody to take them
	return nil
}
