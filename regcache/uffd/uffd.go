// Package uffd notifies package rdma of memory that a process unmaps, moves or drops (userfaultfd(2), events).
//
// The kernel holds the caller of munmap until the event was read. The monitor takes its lock and sets its flag before
// it reads, and clears the flag when every cache is notified: with a clear flag no event is pending.
//
// Memory is watched in write-protection mode with no page protected: in missing mode the monitor would have to fill
// pages. One monitor serves a process, until as many Close as Open. It watches anonymous private memory only, and not
// that of children of fork(2). The event of munmap comes when the pages are gone, so a device that reaches memory by
// its address can fault in between. A munmap of watched memory takes 3 to 10 times its time.
package uffd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// From linux/userfaultfd.h.
const (
	apiVersion   = 0xaa
	ioctlAPI     = 0xc018aa3f
	ioctlWatch   = 0xc020aa00
	ioctlUnwatch = 0x8010aa01

	featureWP     = 1 << 0
	featureRemap  = 1 << 2
	featureRemove = 1 << 3
	featureUnmap  = 1 << 6
	wanted        = featureWP | featureRemap | featureRemove | featureUnmap

	modeWP       = 2
	userModeOnly = 1

	eventRemap  = 0x14
	eventRemove = 0x15
	eventUnmap  = 0x16

	msgSize = 32
	batch   = 16 // events read at once
)

// Monitor is the process's.
type Monitor struct {
	file *os.File
	mode string
	stop []func() // what package rdma calls
	done chan struct{}

	busy   atomic.Uint32
	mu     sync.Mutex // held from before an event is read until every cache is notified
	events atomic.Uint64
	users  int // guarded by the package's lock
}

var (
	lock   sync.Mutex
	shared *Monitor
)

// Open starts the monitor, or joins those who use it. It fails when the system grants no userfaultfd or events.
func Open() (*Monitor, error) {
	lock.Lock()
	defer lock.Unlock()
	if shared == nil {
		m, err := start()
		if err != nil {
			return nil, fmt.Errorf("no userfaultfd: %w", err)
		}
		shared = m
	}
	shared.users++
	return shared, nil
}

func start() (*Monitor, error) {
	mode := "for system calls too"
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno != 0 { // unprivileged: enough for events (/proc/sys/vm/unprivileged_userfaultfd)
		mode = "user mode only"
		if fd, _, errno = unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|userModeOnly, 0,
			0); errno != 0 {
			return nil, errno
		}
	}
	api := struct{ api, features, ioctls uint64 }{api: apiVersion, features: wanted}
	if err := ioctl(fd, ioctlAPI, unsafe.Pointer(&api)); err != nil {
		unix.Close(int(fd))
		return nil, fmt.Errorf("without events of unmap, remap and remove, or write protection: %w", err)
	}
	m := &Monitor{file: os.NewFile(fd, "userfaultfd"), mode: mode, done: make(chan struct{})}
	m.stop = []func(){rdma.BeforeUse(func() {
		if m.busy.Load() != 0 {
			m.Wait()
		}
	}), rdma.Watch(func(l *rdma.Leaving) {
		if l.Cause == rdma.Unmapped { // no cache has it any more
			m.unwatch(l.Addr, l.Len)
		}
	})}
	go m.run()
	return m, nil
}

func ioctl(fd uintptr, op uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, op, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// Mode says what the kernel granted.
func (m *Monitor) Mode() string { return m.mode }

// Busy is not 0 while an event is being handled.
func (m *Monitor) Busy() *atomic.Uint32 { return &m.busy }

// Wait waits until the event that is being handled, if any, has been.
func (m *Monitor) Wait() {
	m.mu.Lock()
	m.mu.Unlock() //nolint:staticcheck // the wait is all that is wanted
}

// Events is how many there were.
func (m *Monitor) Events() uint64 { return m.events.Load() }

// Watch asks for events of the pages of a range. Again for the same is no error.
func (m *Monitor) Watch(addr, n uint64) error {
	lo, hi := pages(addr, n)
	arg := struct{ start, len, mode, ioctls uint64 }{lo, hi - lo, modeWP, 0}
	return m.control(ioctlWatch, unsafe.Pointer(&arg))
}

func (m *Monitor) unwatch(addr, n uint64) {
	// Only pages that lie inside altogether: the others may be a neighbour's.
	lo, hi := pages(addr, n)
	if lo < addr {
		lo += pageSize
	}
	if hi > addr+n {
		hi -= pageSize
	}
	if lo >= hi {
		return
	}
	arg := struct{ start, len uint64 }{lo, hi - lo}
	m.control(ioctlUnwatch, unsafe.Pointer(&arg)) // what was not watched is refused, and right
}

var pageSize = uint64(os.Getpagesize())

func pages(addr, n uint64) (lo, hi uint64) {
	return addr &^ (pageSize - 1), (addr + n + pageSize - 1) &^ (pageSize - 1)
}

func (m *Monitor) control(op uintptr, arg unsafe.Pointer) error {
	rc, err := m.file.SyscallConn()
	if err != nil {
		return err
	}
	var got error
	if err := rc.Control(func(fd uintptr) { got = ioctl(fd, op, arg) }); err != nil {
		return err
	}
	return got
}

func (m *Monitor) run() {
	defer close(m.done)
	rc, err := m.file.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, batch*msgSize)
	for {
		var fail error
		err := rc.Read(func(fd uintptr) bool {
			var some bool
			some, fail = m.turn(int(fd), buf)
			return some || fail != nil
		})
		if err != nil || fail != nil {
			return
		}
	}
}

func (m *Monitor) turn(fd int, buf []byte) (some bool, err error) {
	m.mu.Lock()
	m.busy.Store(1)
	defer m.mu.Unlock()
	defer m.busy.Store(0)
	n, err := unix.Read(fd, buf)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, err
	}
	for ; n >= msgSize; n, buf = n-msgSize, buf[msgSize:] {
		m.events.Add(1)
		word := func(at int) uint64 { return binary.NativeEndian.Uint64(buf[at:]) } // of struct uffd_msg
		switch from := word(8); buf[0] {
		case eventUnmap:
			rdma.Forget(from, word(16)-from)
		case eventRemove:
			rdma.Dropped(from, word(16)-from)
		case eventRemap: // from, to, length
			rdma.Forget(from, word(24))
		}
	}
	return true, nil
}

// Close ends one use of the monitor.
func (m *Monitor) Close() error {
	lock.Lock()
	defer lock.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	shared = nil
	for _, stop := range m.stop {
		stop()
	}
	err := m.file.Close()
	<-m.done
	return err
}
