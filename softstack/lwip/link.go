//go:build lwip && cgo

package lwip

// #include "lw.h"
import "C"

import (
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

type link struct {
	c      *C.struct_lw_link
	sock   *net.UnixConn // of link=shm
	x      *xdp          // of link=xdp
	stack  *Stack
	port   string // that was dialed; empty on the side that listened
	gone   atomic.Bool
	reader sync.WaitGroup

	// Guarded by core.mu.
	pins int
	idle time.Time // since when there are no connections
}

// newLink takes over the memory and the socket, also on error.
func newLink(s *Stack, sock *net.UnixConn, mem []byte, slots, end int, port string) (*link, error) {
	bell := -1
	raw, err := sock.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { bell = int(fd) })
	}
	imp := s.impairment()
	l := &link{sock: sock, stack: s, port: port}
	if err == nil {
		l.c = C.lw_link_shm(unsafe.Pointer(&mem[0]), C.uint32_t(slots), C.int(end), C.int(bell), s.twoCopies(),
			s.mode(), &imp)
	}
	if l.c == nil {
		unix.Munmap(mem)
		sock.Close()
		if err == nil {
			err = fmt.Errorf("more than %d links", C.LW_MAX_LINKS)
		}
		return nil, err
	}
	l.reader.Add(1)
	go l.listen()
	s.core.enter(l)
	return l, nil
}

func (s *Stack) impairment() C.struct_lw_impair {
	return C.struct_lw_impair{loss: chance(s.cfg.Loss), duplicate: chance(s.cfg.Duplicate),
		reorder: chance(s.cfg.Reorder),
		delay:   C.uint64_t(s.cfg.Delay), jitter: C.uint64_t(s.cfg.Jitter), seed: C.uint64_t(s.cfg.Seed)}
}

func (s *Stack) twoCopies() C.int {
	if s.cfg.TwoCopies {
		return 1
	}
	return 0
}

func chance(p float64) C.uint32_t { return C.uint32_t(p * math.MaxUint32) }

// listen wakes the driver for bells, until the other process is gone.
func (l *link) listen() {
	defer l.reader.Done()
	var b [64]byte
	for {
		if _, err := l.sock.Read(b[:]); err != nil {
			break
		}
		l.stack.core.WakeDriver()
		l.stack.core.wakeHelper()
	}
	l.gone.Store(true)
	l.stack.core.WakeDriver()
}

// spent reports whether the link can end. core.mu is held.
func (l *link) spent(now time.Time) bool {
	if l.gone.Load() || atomic.LoadInt32((*int32)(unsafe.Pointer(&l.c.broken))) != 0 {
		return true
	}
	if l.x != nil {
		return false // an interface is the stack's until it gives it back
	}
	if l.pins > 0 || atomic.LoadInt32((*int32)(unsafe.Pointer(&l.c.conns))) > 0 {
		l.idle = time.Time{}
		return false
	}
	if l.idle.IsZero() {
		l.idle = now
	}
	// Who dialed ends it first: the other side learns of it from the socket.
	grace := linkGrace
	if l.port == "" {
		grace *= 10
	}
	idle := now.Sub(l.idle)
	return idle > grace && (idle > orphanGrace || C.lw_link_unacknowledged(l.c, 0) == 0)
}

// end takes what the peer put into the ring, and then the link out of the stack; its connections are lost.
func (l *link) end() {
	l.stack.core.turn(0)
	l.stack.add(l.counts())
	C.lw_link_close(l.c)
	if l.sock != nil {
		l.sock.Close()
		l.reader.Wait()
	}
}

// untold is how many frames wait until somebody tells the kernel of them, which is none.
func (l *link) untold() int { return int(C.lw_untold(l.c)) }

func (l *link) counts() Counts {
	var n C.struct_lw_counts
	C.lw_counts_of(l.c, &n)
	return Counts{
		TxFrames: uint64(n.tx_frames), TxOctets: uint64(n.tx_octets), TxDropped: uint64(n.tx_dropped),
		RxFrames: uint64(n.rx_frames), RxOctets: uint64(n.rx_octets), RxCopied: uint64(n.rx_copied),
		RxMissed: uint64(n.rx_missed),
		Lost:     uint64(n.lost), Duplicated: uint64(n.duplicated), Reordered: uint64(n.reordered),
		Delayed: uint64(n.delayed), Bells: uint64(n.bells), Refused: uint64(n.refused),
	}
}
