package stream

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Readiness bits for Poller.
const (
	Readable uint32 = unix.EPOLLIN
	Writable uint32 = unix.EPOLLOUT
	OneShot  uint32 = unix.EPOLLONESHOT
)

// Event is one ready descriptor, named by the tag given to Add.
type Event struct {
	Tag  uint64
	Bits uint32
}

// Poller is an epoll instance with a wake-up. Add, Modify, Remove and Wake may
// be called from any goroutine; Wait from one at a time.
type Poller struct {
	ep, wake int
	raw      [64]unix.EpollEvent // 64 a call, arbitrary: more are returned by the next call

	// A descriptor's number is another's as soon as it is closed: a late Wake would
	// put its octets into somebody's socket.
	mu     sync.RWMutex
	closed bool

	// Of a parking poller: the instance as a file of Go's own network poller.
	file *os.File
	park syscall.RawConn
}

const wakeTag = ^uint64(0)

// NewPoller makes an epoll instance.
func NewPoller() (*Poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &Poller{ep: ep, wake: wake}
	if err := p.Add(wake, wakeTag, Readable); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// NewParkingPoller makes an epoll instance whose Wait parks the goroutine instead
// of blocking a thread in the kernel. Waking takes a few microseconds longer,
// but nobody pays while it sleeps: a thread that blocks in a system call now and
// then keeps the runtime's monitor awake, thousands of times a second, beside
// the spinning thread that the process is really about.
func NewParkingPoller() (*Poller, error) {
	p, err := NewPoller()
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(p.ep, true); err != nil {
		p.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	p.file = os.NewFile(uintptr(p.ep), "epoll")
	if p.park, err = p.file.SyscallConn(); err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // fails if Go's poller did not take it
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Add watches fd for bits under tag (any value but the highest).
func (p *Poller) Add(fd int, tag uint64, bits uint32) error {
	return p.ctl(unix.EPOLL_CTL_ADD, fd, tag, bits)
}

// Modify changes the bits, or arms a OneShot descriptor again.
func (p *Poller) Modify(fd int, tag uint64, bits uint32) error {
	return p.ctl(unix.EPOLL_CTL_MOD, fd, tag, bits)
}

// Remove ends watching fd.
func (p *Poller) Remove(fd int) error { return p.ctl(unix.EPOLL_CTL_DEL, fd, 0, 0) }

func (p *Poller) ctl(op, fd int, tag uint64, bits uint32) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return os.ErrClosed
	}
	ev := unix.EpollEvent{Events: bits}
	*(*uint64)(unsafe.Pointer(&ev.Fd)) = tag // Fd and Pad are the kernel's 64-bit data field
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.ep, op, fd, &ev))
}

// Wait blocks until something is ready, Wake is called, or ms milliseconds have
// passed (-1: no limit, 0: no wait), and fills dst. Wake-ups are not reported.
func (p *Poller) Wait(dst []Event, ms int) (int, error) {
	raw := p.raw[:min(len(dst), len(p.raw))]
	var n int
	var err error
	if p.park != nil && ms != 0 {
		n, err = p.parked(raw, ms)
	} else {
		n, err = unix.EpollWait(p.ep, raw, ms)
	}
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	out := 0
	for i := range n {
		tag := *(*uint64)(unsafe.Pointer(&p.raw[i].Fd))
		if tag == wakeTag {
			var b [8]byte
			unix.Read(p.wake, b[:]) // non-blocking; empties the counter
			continue
		}
		dst[out] = Event{tag, p.raw[i].Events}
		out++
	}
	return out, nil
}

// Ready is Wait without waiting, from any goroutine: what is ready now, at most 16. A
// wake-up stays for Wait. An instance that is closed has nothing.
func (p *Poller) Ready(dst []Event) int {
	var raw [16]unix.EpollEvent
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return 0
	}
	n, err := unix.EpollWait(p.ep, raw[:min(len(dst), len(raw))], 0)
	if err != nil {
		return 0 // EINTR: the next look finds it
	}
	out := 0
	for i := range n {
		if tag := *(*uint64)(unsafe.Pointer(&raw[i].Fd)); tag != wakeTag {
			dst[out] = Event{tag, raw[i].Events}
			out++
		}
	}
	return out
}

func (p *Poller) parked(raw []unix.EpollEvent, ms int) (n int, err error) {
	var deadline time.Time
	if ms > 0 {
		deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	if err := p.file.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	perr := p.park.Read(func(fd uintptr) bool {
		n, err = unix.EpollWait(int(fd), raw, 0)
		return n != 0 || err != nil
	})
	if err == nil && perr != nil && !errors.Is(perr, os.ErrDeadlineExceeded) {
		err = perr
	}
	return n, err
}

// Wake makes a Wait in progress, or the next one, return. After Close it does
// nothing: who wakes on behalf of a context cannot know that the waiter left.
func (p *Poller) Wake() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return
	}
	one := [8]byte{1} // host order; any non-zero count wakes
	unix.Write(p.wake, one[:])
}

// Close frees the instance. No Wait may be in progress.
func (p *Poller) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	unix.Close(p.wake)
	if p.file != nil {
		p.file.Close()
	} else {
		unix.Close(p.ep)
	}
	return nil
}

// Await blocks until the connection is ready for any of bits, or ms
// milliseconds have passed.
func (c *Conn) Await(bits uint32, ms int) {
	ev := int16(0)
	if bits&Readable != 0 {
		ev |= unix.POLLIN
	}
	if bits&Writable != 0 {
		ev |= unix.POLLOUT
	}
	fds := [1]unix.PollFd{{Fd: int32(c.fd), Events: ev}}
	unix.Poll(fds[:], ms) // an error or EINTR only means looking again early
}
