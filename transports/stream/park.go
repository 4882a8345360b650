package stream

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// parking is a socket as a file of Go's own network poller.
type parking struct {
	file  *os.File // owns the descriptor; nil before the first Parks
	raw   syscall.RawConn
	inUse sync.Mutex // held by the Park in progress
	look  func() bool
	ready func(uintptr) bool // calls look; a field so that no Park allocates it
}

// unparked is a deadline in the past.
var unparked = time.Unix(1, 0)

func (c *socket) Parks() bool {
	p := &c.park
	if p.file == nil && !c.closed.Load() {
		p.file = os.NewFile(uintptr(c.fd), "socket")
		p.ready = func(uintptr) bool { return p.look() }
		// Deadlines fail on what Go's poller did not take.
		if raw, err := p.file.SyscallConn(); err == nil && p.file.SetReadDeadline(time.Time{}) == nil {
			p.raw = raw
		}
	}
	return p.raw != nil
}

func (c *socket) Park(look func() bool) error {
	p := &c.park
	p.inUse.Lock()
	p.look = look
	err := p.raw.Read(p.ready)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = p.file.SetReadDeadline(time.Time{})
	}
	p.inUse.Unlock()
	if c.closed.Load() { // by look, or meanwhile
		p.file.Close()
		return nil
	}
	return err
}

func (c *socket) Unpark() { c.park.file.SetReadDeadline(unparked) }

// close closes the descriptor, or has the Park in progress do it: who closes inside of that would wait for itself.
func (p *parking) close() error {
	if !p.inUse.TryLock() {
		return p.file.SetReadDeadline(unparked)
	}
	defer p.inUse.Unlock()
	return p.file.Close()
}
