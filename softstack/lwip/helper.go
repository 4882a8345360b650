//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// helpLooks in vain send the packet thread to sleep until a bell: some milliseconds.
	helpLooks = 1 << 16
	// offerLooks is how many empty looks an application makes before it offers its CPU to the packet thread.
	offerLooks = 16
)

// startHelper starts the packet thread. s.mu is held.
func (s *core) startHelper() {
	if s.helping {
		s.wakeHelper()
		return
	}
	s.helping = true
	go s.helper()
}

// helper is the packet thread of links that have one, as long as there are any.
func (s *core) helper() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var ev [32]uint32
	for {
		n := C.lw_help(turnFrames, helpLooks, (*C.uint32_t)(unsafe.Pointer(&ev[0])), C.int(len(ev)))
		if n > 0 {
			s.report(ev[:n])
			continue
		}
		if n < 0 && s.noHelp() {
			return
		}
		s.dozing.Store(true)
		if C.lw_sleep(1) == 0 {
			s.sleepOnInterfaces()
			<-s.help
		}
		s.dozing.Store(false)
	}
}

// noHelp ends the helper when no link needs it.
func (s *core) noHelp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.helping = slices.ContainsFunc(s.links, func(l *link) bool { return l.c.mode != C.LW_INLINE })
	return !s.helping
}

func (s *core) wakeHelper() {
	select {
	case s.help <- struct{}{}:
	default:
	}
}

// await is what an application does, whose stack has a thread, when it finds nothing.
func (c *conn) await() {
	if c.idle++; c.idle%offerLooks != 0 {
		return
	}
	if c.s.dozing.Load() {
		c.s.wakeHelper()
	}
	c.s.yields.Add(1)
	syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
