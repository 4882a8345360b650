package rdma

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma/ranges"
)

type mapping struct {
	b     []byte // what users may touch
	whole []byte // what was mapped, b and what its alignment took; nil: somebody else's
	arena *Arena
	open  atomic.Bool // of a foreign one: all of it was seen to be readable and writable
}

// space is the process's live mappings, in several ranges where Forget took a part.
var space addressSpace

type addressSpace struct {
	mu   sync.Mutex // of writers
	live ranges.Index[*mapping]
}

func (s *addressSpace) add(m *mapping) error {
	base := addrOf(m.b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live.Insert(ranges.Entry[*mapping]{Base: base, End: base + uint64(len(m.b)), Val: m}) {
		return ErrBusy
	}
	return nil
}

// claim is add for what the system has just mapped: whoever is said to be there was unmapped without a word.
func (s *addressSpace) claim(m *mapping) {
	syncWatchers()
	for s.add(m) != nil {
		Forget(addrOf(m.b), uint64(len(m.b)))
	}
}

// takeWhole removes m where nothing of it was forgotten.
func (s *addressSpace) takeWhole(m *mapping) (e ranges.Entry[*mapping], ok bool) {
	base := addrOf(m.b)
	s.mu.Lock()
	e, ok = s.live.RemoveIf(base, func(e *ranges.Entry[*mapping]) bool {
		return e.Val == m && e.End == base+uint64(len(m.b))
	})
	s.mu.Unlock()
	return e, ok
}

func (s *addressSpace) take(m *mapping) (left []ranges.Entry[*mapping]) {
	base := addrOf(m.b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.Overlapping(base, base+uint64(len(m.b)), func(e ranges.Entry[*mapping]) bool {
		if e.Val == m {
			left = append(left, e)
		}
		return true
	})
	for _, e := range left {
		s.live.Remove(e.Base)
	}
	return left
}

func (s *addressSpace) forget(base, end uint64) (lost []ranges.Entry[*mapping]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.Overlapping(base, end, func(e ranges.Entry[*mapping]) bool {
		lost = append(lost, e)
		return true
	})
	for i, e := range lost {
		s.live.Remove(e.Base)
		if e.Base < base {
			s.live.Insert(ranges.Entry[*mapping]{Base: e.Base, End: base, Val: e.Val})
			lost[i].Base = base
		}
		if e.End > end {
			s.live.Insert(ranges.Entry[*mapping]{Base: end, End: e.End, Val: e.Val})
			lost[i].End = end
		}
	}
	return lost
}

// Forget tells that the system has taken pages away, or given others in their place, behind rdmaperf's back: somebody
// unmapped, moved or dropped them. Ranges are widened to whole pages. The functions of [Watch] are called for every
// live part of it; it is no Buffer from here on, and the rest of its mapping still is.
func Forget(addr, n uint64) {
	page := uint64(pageSize)
	end := addr + n
	if n == 0 || end < addr {
		return
	}
	base := addr &^ (page - 1)
	end = (end + page - 1) &^ (page - 1)
	for _, e := range space.forget(base, end) {
		leave(&Leaving{Addr: e.Base, Len: e.End - e.Base, Cause: PagesGone})
	}
}

// Dropped tells that the system has taken pages away whose range stays mapped and gets
// others at the next touch (madvise(2), MADV_DONTNEED). It is as Forget, but that all
// Buffers live on: what a device has pinned is not what they show any more.
func Dropped(addr, n uint64) {
	end := addr + n
	if n == 0 || end < addr {
		return
	}
	base := addr &^ uint64(pageSize-1)
	end = (end + uint64(pageSize) - 1) &^ uint64(pageSize-1)
	var parts []ranges.Entry[*mapping]
	space.mu.Lock()
	space.live.Overlapping(base, end, func(e ranges.Entry[*mapping]) bool {
		parts = append(parts, ranges.Entry[*mapping]{Base: max(e.Base, base), End: min(e.End, end)})
		return true
	})
	space.mu.Unlock()
	for _, e := range parts {
		leave(&Leaving{Addr: e.Base, Len: e.End - e.Base, Cause: PagesDropped})
	}
}

func (m *mapping) end() error {
	if e, ok := space.takeWhole(m); ok {
		return m.leaves(e, true)
	}
	left := space.take(m)
	if len(left) == 0 {
		return ErrClosed
	}
	var errs []error
	for _, e := range left {
		errs = append(errs, m.leaves(e, len(left) == 1))
	}
	return errors.Join(errs...)
}

func (m *mapping) leaves(e ranges.Entry[*mapping], all bool) error {
	l := Leaving{Addr: e.Base, Len: e.End - e.Base, Cause: Unmapped}
	if m.whole != nil {
		l.finish = func() error { return m.unmap(e.Base, e.End, all) }
	}
	return leave(&l)
}

func (m *mapping) unmap(base, end uint64, all bool) error {
	if all && end-base == uint64(len(m.b)) {
		return unmapMemory(m.whole)
	}
	off := base - addrOf(m.b)
	return unmapMemory(m.b[off : off+(end-base)])
}

var pageSize = syscall.Getpagesize()

// mapMemory is mmap(2) of private memory. The syscall package would keep a list of its own, with a lock.
func mapMemory(size int, flags int) ([]byte, error) {
	addr, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, uintptr(size), syscall.PROT_READ|syscall.PROT_WRITE,
		uintptr(syscall.MAP_PRIVATE|syscall.MAP_ANON|flags), ^uintptr(0), 0)
	if errno != 0 {
		return nil, errno
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size), nil
}

func unmapMemory(b []byte) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(addrOf(b)), uintptr(len(b)), 0); errno != 0 {
		return errno
	}
	return nil
}
