//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var cqSerial atomic.Uint64

// waitSlice is how often a sleeping Wait looks around by itself.
const waitSlice = 200 * time.Millisecond

// sleeper lets threads sleep on a completion channel until it has an event or
// somebody wakes them. poll(2) in the thread itself costs one wake-up; Go's own
// poller would add a hand-over.
type sleeper struct {
	fd   int // eventfd
	held *sync.RWMutex
	gone *atomic.Bool
}

func newSleeper() (sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	return sleeper{fd, new(sync.RWMutex), new(atomic.Bool)}, err
}

func (s *sleeper) wake() {
	s.held.RLock()
	defer s.held.RUnlock()
	if !s.gone.Load() {
		unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

// sleep returns when channel is readable, on a wake, or after limit.
func (s *sleeper) sleep(channel int, limit time.Duration) error {
	s.held.RLock()
	defer s.held.RUnlock()
	if s.gone.Load() {
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
	s.held.Unlock()
}

// Arm asks for one event.
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

// Wait blocks until the armed event fires or ctx ends.
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
		if err := c.waiting.sleep(c.fd, waitSlice); err != nil {
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
