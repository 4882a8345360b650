package stream

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epoll is an epoll instance with a wake-up; [Poller] says what its methods do.
type epoll struct {
	ep, wake int
	raw      [64]unix.EpollEvent // 64 a call, arbitrary: more are returned by the next call

	// A descriptor's number is another's as soon as it is closed: a late Wake would
	// put its octets into somebody's socket.
	mu     sync.RWMutex
	closed bool

	// The instance as a file of Go's own network poller, once a Wait has to park, and the deadline set there.
	file    *os.File
	park    syscall.RawConn
	limited bool
}

// mostBlocked is how many threads of the process may sleep in epoll_wait(2) for their
// pollers. Each blocked goroutine owns a thread, and the runtime never gives one back
// (a server that 64 silent peers had visited kept 71). Waits beyond it park instead, as
// those of a parking poller do: more than a measurement has threads that wait,
// so that what it measures wakes as fast as the kernel can.
const mostBlocked = 16

var blocked atomic.Int32

const wakeTag = ^uint64(0)

func newEpoll() (*epoll, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &epoll{ep: ep, wake: wake}
	if err := p.ctl(unix.EPOLL_CTL_ADD, wake, wakeTag, Readable); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// parkable gives the instance to Go's network poller, once. Only Wait and who makes the
// instance may call it.
func (p *epoll) parkable() error {
	if p.park != nil {
		return nil
	}
	if p.file == nil {
		if err := unix.SetNonblock(p.ep, true); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		p.file = os.NewFile(uintptr(p.ep), "epoll") // it closes the descriptor from here on
	}
	park, err := p.file.SyscallConn()
	if err == nil {
		err = p.file.SetReadDeadline(time.Time{}) // fails if Go's poller did not take it
	}
	if err == nil {
		p.park = park
	}
	return err
}

func (p *epoll) Add(c Conn, tag uint64, bits uint32) error {
	return p.ctl(unix.EPOLL_CTL_ADD, c.(*socket).fd, tag, bits)
}

func (p *epoll) Modify(c Conn, tag uint64, bits uint32) error {
	return p.ctl(unix.EPOLL_CTL_MOD, c.(*socket).fd, tag, bits)
}

func (p *epoll) Remove(c Conn) error { return p.ctl(unix.EPOLL_CTL_DEL, c.(*socket).fd, 0, 0) }

func (p *epoll) ctl(op, fd int, tag uint64, bits uint32) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return os.ErrClosed
	}
	ev := unix.EpollEvent{Events: bits}
	*(*uint64)(unsafe.Pointer(&ev.Fd)) = tag // Fd and Pad are the kernel's 64-bit data field
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.ep, op, fd, &ev))
}

func (p *epoll) Wait(dst []Event, ms int, park bool) (int, error) {
	polls.Add(1)
	raw := p.raw[:min(len(dst), len(p.raw))]
	n, err := p.sleep(raw, ms, park)
	if err == unix.EINTR {
		return 0, nil
	}
	if err != nil {
		return 0, os.NewSyscallError("epoll_wait", err)
	}
	n, woken := ready(dst, raw[:n])
	if woken {
		var b [8]byte
		unix.Read(p.wake, b[:]) // non-blocking; empties the counter
	}
	return n, nil
}

// ready moves what is ready into dst, but for the wake-up.
func ready(dst []Event, raw []unix.EpollEvent) (n int, woken bool) {
	for i := range raw {
		if tag := *(*uint64)(unsafe.Pointer(&raw[i].Fd)); tag == wakeTag {
			woken = true
		} else {
			dst[n] = Event{tag, raw[i].Events}
			n++
		}
	}
	return n, woken
}

// sleep waits in the kernel, or parks where the process has threads enough there.
func (p *epoll) sleep(raw []unix.EpollEvent, ms int, park bool) (int, error) {
	if ms == 0 {
		return unix.EpollWait(p.ep, raw, 0)
	}
	if !park {
		if blocked.Add(1) <= mostBlocked {
			defer blocked.Add(-1)
			return unix.EpollWait(p.ep, raw, ms)
		}
		blocked.Add(-1)
	}
	if err := p.parkable(); err != nil {
		return 0, err
	}
	return p.parked(raw, ms)
}

func (p *epoll) Ready(dst []Event) int {
	var raw [16]unix.EpollEvent
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return 0
	}
	polls.Add(1)
	// It waits for nothing, so the runtime need not know: told of a system call, it may give
	// this thread's P to another one.
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.ep), uintptr(unsafe.Pointer(&raw[0])),
		uintptr(min(len(dst), len(raw))), 0, 0, 0)
	if e != 0 {
		return 0 // EINTR: the next look finds it
	}
	k, _ := ready(dst, raw[:n])
	return k
}

func (p *epoll) parked(raw []unix.EpollEvent, ms int) (n int, err error) {
	if ms > 0 || p.limited {
		var deadline time.Time
		if p.limited = ms > 0; p.limited {
			deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
		}
		if err := p.file.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
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

func (p *epoll) Wake() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.closed {
		return
	}
	one := [8]byte{1} // host order; any non-zero count wakes
	unix.Write(p.wake, one[:])
}

func (p *epoll) Close() error {
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

func (c *socket) Await(bits uint32, ms int) {
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
