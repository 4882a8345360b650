package uffd

import (
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func monitor(t *testing.T) *Monitor {
	t.Helper()
	m, err := Open()
	if err != nil {
		t.Skipf("not granted here: %v", err)
	}
	t.Cleanup(func() { expect.OK(t, m.Close()) })
	return m
}

func declared(t *testing.T, n int) ([]byte, rdma.Buffer) {
	t.Helper()
	raw := expect.Get(unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	b := unsafe.Slice((*byte)(raw), n)
	// It stays mapped: what a test has unmapped may be anybody's by its end.
	f := expect.Get(rdma.Foreign(b))(t)
	t.Cleanup(func() { f.Free() })
	return b, f
}

// Whoever returns from a system call that took watched memory away finds that everybody
// has seen, or waits for it by the flag.
func TestEveryEventIsHeardBeforeItsCallReturns(t *testing.T) {
	m := monitor(t)
	var mu sync.Mutex
	var seen []rdma.Cause
	stop := rdma.Watch(func(l *rdma.Leaving) {
		time.Sleep(2 * time.Millisecond) // slow to hear
		mu.Lock()
		seen = append(seen, l.Cause)
		mu.Unlock()
	})
	defer stop()
	waited := func() []rdma.Cause {
		if m.Busy().Load() != 0 {
			m.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
	for range 20 {
		seen = nil
		raw, b := declared(t, 8*4096)
		expect.OK(t, m.Watch(b.Addr(), uint64(b.Len())))
		if err := m.Watch(b.Addr()+100, 4096); err != nil {
			t.Fatalf("watched twice: %v", err)
		}
		raw[0] = 1 // touching costs nothing and tells nothing
		expect.OK(t, unix.Madvise(raw[:4096], unix.MADV_DONTNEED))
		if got := waited(); !slices.Equal(got, []rdma.Cause{rdma.PagesDropped}) || !b.Live() || raw[0] != 0 {
			t.Fatalf("after MADV_DONTNEED: %v", got)
		}
		expect.OK(t, unix.MunmapPtr(unsafe.Pointer(&raw[4096]), 4096))
		if got := waited(); !slices.Equal(got, []rdma.Cause{rdma.PagesDropped, rdma.PagesGone}) || b.Live() {
			t.Fatalf("after munmap: %v", got)
		}
		b.Free()
	}
	if m.Events() < 40 {
		t.Errorf("%d events", m.Events())
	}
}

// The address of memory that just went is somebody else's at once, whose memory is not
// forgotten for what the last owner did.
func TestNewMemoryIsNotForgottenForOld(t *testing.T) {
	m := monitor(t)
	stop := rdma.Watch(func(l *rdma.Leaving) {
		if l.Cause == rdma.PagesGone {
			time.Sleep(5 * time.Millisecond) // the old owner's end is told late
		}
	})
	defer stop()
	same := 0
	for i := 0; i < 40 || same == 0 && i < 100; i++ { // on a busy machine few turns are such
		raw, b := declared(t, 64*4096)
		expect.OK(t, m.Watch(b.Addr(), uint64(b.Len())))
		unix.MunmapPtr(unsafe.Pointer(&raw[0]), 32*4096)
		// While that is told, two more: read together, and the second is told when both
		// callers have returned.
		// callers have returned.
		var both sync.WaitGroup
		for _, at := range []int{32, 48} {
			both.Go(func() { unix.MunmapPtr(unsafe.Pointer(&raw[at*4096]), 16*4096) })
		}
		both.Wait()
		x := expect.Get(rdma.Alloc(64 * 4096))(t)
		if x.Addr() == b.Addr() {
			same++
		}
		m.Wait()
		if !x.Live() {
			t.Fatal("new memory is forgotten")
		}
		x.Free()
		b.Free()
	}
	if same == 0 {
		t.Skip("the kernel gave no address a second time")
	}
}

func TestMemoryThatIsFreedIsNotWatchedAnyMore(t *testing.T) {
	m := monitor(t)
	raw, b := declared(t, 4*4096)
	expect.OK(t, m.Watch(b.Addr(), uint64(b.Len())))
	b.Free()
	before := m.Events()
	unix.Madvise(raw, unix.MADV_DONTNEED)
	m.Wait()
	if n := m.Events() - before; n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestOneMonitorServesAll(t *testing.T) {
	a := monitor(t)
	b, err := Open()
	if err != nil || a != b {
		t.Errorf("a second monitor: %v", err)
	}
	expect.OK(t, b.Close())
	_, f := declared(t, 4096)
	if err := a.Watch(f.Addr(), 4096); err != nil {
		t.Errorf("after one of two users has gone: %v", err)
	}
	if err := a.Watch(1<<46, 4096); err == nil {
		t.Error("memory that is not there is watched")
	}
}
