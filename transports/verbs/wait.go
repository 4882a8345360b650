//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var cqSerial atomic.Uint64

const waitSlice = 200 * time.Millisecond

// sleeper lets threads sleep on a completion channel until it has an event or somebody wakes them. poll(2) in the
// thread itself costs one wake-up; to a goroutine that is locked to its thread Go's own poller would add a hand-over.
type sleeper struct {
	fd   int // eventfd
	held *sync.RWMutex
	gone *atomic.Bool
	park *parking
}

// parking is what sleeps that park (rdma.Parked) wait for: an epoll instance over channel and eventfd, as a file of
// Go's network poller. It is made by the first of them.
type parking struct {
	mu   sync.Mutex
	file *os.File
	raw  syscall.RawConn
}

func newSleeper() (sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	return sleeper{fd, new(sync.RWMutex), new(atomic.Bool), new(parking)}, err
}

// open makes the instance. The caller holds mu.
func (p *parking) open(fds ...int) error {
	if p.file != nil {
		return nil
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	for _, fd := range fds {
		err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		if err != nil {
			unix.Close(ep)
			return os.NewSyscallError("epoll_ctl", err)
		}
	}
	if err := unix.SetNonblock(ep, true); err != nil {
		unix.Close(ep)
		return os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(ep), "epoll")
	if p.raw, err = file.SyscallConn(); err != nil {
		file.Close()
		return err
	}
	p.file = file
	return nil
}

func (p *parking) wait(limit time.Duration) error {
	if err := p.file.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	var n int
	var err error
	perr := p.raw.Read(func(fd uintptr) bool {
		var ev [2]unix.EpollEvent
		n, err = unix.EpollWait(int(fd), ev[:], 0)
		return n != 0 || err != nil && err != syscall.EINTR
	})
	if err == nil && perr != nil && !errors.Is(perr, os.ErrDeadlineExceeded) {
		err = perr
	}
	return err
}

func (s *sleeper) wake() {
	s.held.RLock()
	defer s.held.RUnlock()
	if !s.gone.Load() {
		unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (s *sleeper) sleep(channel int, limit time.Duration, park bool) error {
	s.held.RLock()
	defer s.held.RUnlock()
	if s.gone.Load() {
		return nil
	}
	if park {
		s.park.mu.Lock()
		defer s.park.mu.Unlock()
		if err := s.park.open(channel, s.fd); err != nil {
			return err
		}
		if err := s.park.wait(limit); err != nil && err != syscall.EINTR {
			return err
		}
		var b [8]byte
		unix.Read(s.fd, b[:]) // non-blocking; empties the counter
		return nil
	}
	fds := [2]unix.PollFd{{Fd: int32(channel), Events: unix.POLLIN}, {Fd: int32(s.fd), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(int64(limit))
	if _, err := unix.Ppoll(fds[:], &ts, nil); err != nil && err != syscall.EINTR {
		return err
	}
	if fds[1].Revents != 0 {
		var b [8]byte
		unix.Read(s.fd, b[:])
	}
	return nil
}

// close wakes all sleepers and returns when none is left.
func (s *sleeper) close() {
	if s.gone.Swap(true) {
		return
	}
	for !s.held.TryLock() {
		unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		time.Sleep(50 * time.Microsecond)
	}
	unix.Close(s.fd)
	if s.park.file != nil {
		s.park.file.Close()
	}
	s.held.Unlock()
}

func (c *cq) Arm(solicitedOnly bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return rdma.ErrClosed
	}
	if solicitedOnly && !c.dev.caps.Features.Has(rdma.FeatSolicited) {
		return rdma.ErrNotSupported
	}
	if rc := C.vb_arm(c.c, flag(solicitedOnly)); rc != 0 {
		return &rdma.OpError{Op: "arm cq", Err: errno(rc)}
	}
	return nil
}

func (c *cq) Wait(ctx context.Context) error {
	for hooked := false; ; {
		done, err := c.takeEvent()
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !hooked && ctx.Done() != nil {
			hooked = true // only who really has to sleep pays for it
			stop := context.AfterFunc(ctx, c.waiting.wake)
			defer stop()
		}
		if err := c.waiting.sleep(c.fd, waitSlice, rdma.Parks(ctx)); err != nil {
			return &rdma.OpError{Op: "wait for cq", Err: err}
		}
	}
}

func (c *cq) takeEvent() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return false, rdma.ErrClosed
	case c.woken:
		c.woken = false
		return true, nil
	}
	err := errno(C.vb_take_event(c.c))
	switch {
	case err == nil:
		return true, nil
	case c.overrun:
		return false, rdma.ErrCQOverrun
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, &rdma.OpError{Op: "take cq event", Err: err}
}
