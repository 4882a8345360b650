package regcache

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// present reports whether a range is mapped (mincore(2)).
func present(addr uint64, n int) bool {
	vec := make([]byte, (n+4095)/4096)
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(addr), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
	return errno == 0
}

func TestFreeClosesWhatIsIdle(t *testing.T) {
	r := newRig(t, Config{})
	b, _ := rdma.Alloc(8192)
	keep := r.use(r.alloc(4096), rw)
	k1, k2 := r.use(part(t, b, 0, 4096), rw), r.use(part(t, b, 4096, 100), 0)
	expect.OK(t, b.Free())
	if r.is(k1) || r.is(k2) || !r.is(keep) {
		t.Error("a key of freed memory, or none of other memory")
	}
	counted(t, r.c, counts{"regions_inv_unmap": 2, "unmap_events": 1, "bytes": 4096})
}

func TestFreedMemoryInUseIsUnmappedByTheLastPut(t *testing.T) {
	r := newRig(t, Config{})
	b, _ := rdma.Alloc(8192)
	addr := b.Addr()
	g, h := r.get(part(t, b, 0, 4096), rw), r.get(part(t, b, 4096, 4096), 0)
	merged := r.get(b, rw) // g is in no table now
	expect.OK(t, b.Free())
	expect.Is(t, "Get of freed memory", expect.Err(r.s.Get(b, rw)), rdma.ErrClosed)
	for _, x := range []*Region{merged, h, g} {
		if !present(addr, 8192) || !r.is(x.RKey()) {
			t.Fatal("unmapped or closed in use")
		}
		b.Bytes()[0]++
		r.put(x)
		if r.is(x.RKey()) {
			t.Error("open after the last use")
		}
	}
	if present(addr, 8192) {
		t.Error("mapped after the last use")
	}
}

func TestABlockThatReturnsTakesItsKeysAlong(t *testing.T) {
	r := newRig(t, Config{})
	a := expect.Get(rdma.NewArena(1<<20, rdma.ArenaConfig{}))(t)
	b, _ := a.Alloc(4096, 4096)
	remoteKey, localKey := r.use(b, rw), r.use(b, rdma.LocalWrite|rdma.RemoteRead)
	b.Free()
	if r.is(remoteKey) || r.is(localKey) {
		t.Error("a peer's key of a block that its owner gave back")
	}
	b, _ = a.Alloc(4096, 4096)
	localKey = r.use(b, 0)
	b.Free()
	if !r.is(localKey) {
		t.Error("a key that no peer can use went with the block: its pages did not")
	}
	b, _ = a.Alloc(4096, 4096)
	if k := r.use(b, 0); k != localKey {
		t.Error("the next owner has another local key")
	}
	g := r.get(b, 0) // a device reads or writes there: nobody is given the block
	at := b.Addr()
	b.Free()
	if a.Held() != 1 {
		t.Errorf("%d blocks are held", a.Held())
	}
	c, _ := a.Alloc(4096, 4096)
	if c.Addr() == at {
		t.Error("a block in use was handed out")
	}
	r.put(g)
	if a.Held() != 0 || r.is(g.LKey()) {
		t.Error("held after the last use")
	}
	c.Free()
	expect.OK(t, a.Close())
	counted(t, r.c, counts{"bytes": 0})
}

func TestRegistrationIsOutsideTheLock(t *testing.T) {
	r := newRig(t, Config{})
	hit, slow := r.alloc(4096), r.alloc(4096)
	r.use(hit, rw)
	gate, entered := make(chan struct{}), make(chan struct{}, 2)
	r.mu.Lock()
	r.gate, r.entered = gate, entered
	r.mu.Unlock()
	done := make(chan *Region)
	go func() { g, _ := r.s.Get(slow, rw); done <- g }()
	<-entered
	r.use(hit, rw)                                       // without the lock
	r.use(hit, rw)                                       //
	r.c.Counters()                                       // under it
	go func() { g, _ := r.s.Get(slow, rw); done <- g }() // and another registration
	<-entered
	close(gate)
	g, h := <-done, <-done
	r.mu.Lock()
	r.gate = nil
	r.mu.Unlock()
	if g != h {
		t.Error("two registrations of the same are kept")
	}
	r.put(g)
	r.put(h)
	if n := r.c.Counters(); n.Overtaken+n.RegionsMerged != 1 || n.Regions != 2 {
		t.Errorf("%+v", n)
	}
}

func TestMemoryThatLeavesWhileItIsRegistered(t *testing.T) {
	r := newRig(t, Config{})
	b, _ := rdma.Alloc(4096)
	addr := b.Addr()
	r.gate, r.entered = make(chan struct{}), make(chan struct{}, 1)
	done := make(chan error)
	go func() { _, err := r.s.Get(b, rw); done <- err }()
	<-r.entered
	b.Free()
	if !present(addr, 4096) {
		t.Error("unmapped under a device that is registering it")
	}
	close(r.gate)
	expect.Is(t, "memory that left", <-done, rdma.ErrClosed)
	r.gate = nil
	if present(addr, 4096) || r.bytes != 0 {
		t.Error("memory or registration stays")
	}
}

func TestMemoryThatADeviceDoesNotReleaseStays(t *testing.T) {
	r := newRig(t, Config{})
	b, _ := rdma.Alloc(4096)
	addr := b.Addr()
	r.use(b, rw)
	r.refuse = true
	b.Free()
	if !present(addr, 4096) {
		t.Error("unmapped, and the device may write there")
	}
	if err := r.c.Close(); err == nil {
		t.Error("nobody is told")
	}
	r.refuse = false
	if err := r.c.Close(); err != nil || present(addr, 4096) {
		t.Errorf("%v, mapped: %v", err, present(addr, 4096))
	}
	counted(t, r.c, counts{"refused": 2})
}

// foreign is memory that package rdma has not mapped.
func foreign(t testing.TB, n int) (raw []byte, b rdma.Buffer) {
	t.Helper()
	raw = rawMap(t, 0, n)
	b = expect.Get(rdma.Foreign(raw))(t)
	t.Cleanup(func() { b.Free() })
	return raw, b
}

// rawMap is mmap(2), at an address if that is not 0, as any library may do it.
func rawMap(t testing.TB, at uint64, n int) []byte {
	t.Helper()
	flags := uintptr(syscall.MAP_PRIVATE | syscall.MAP_ANON)
	if at != 0 {
		flags |= syscall.MAP_FIXED
	}
	p, _, errno := syscall.Syscall6(syscall.SYS_MMAP, uintptr(at), uintptr(n), syscall.PROT_READ|syscall.PROT_WRITE,
		flags, ^uintptr(0), 0)
	if errno != 0 {
		t.Fatal(os.NewSyscallError("mmap", errno))
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)
}

func rawUnmap(t testing.TB, addr uint64, n int) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(addr), uintptr(n), 0); errno != 0 {
		t.Fatal(os.NewSyscallError("munmap", errno))
	}
}

func TestForeignMemoryWithoutASourceIsNotKept(t *testing.T) {
	r := newRig(t, Config{Source: SourceArena})
	_, b := foreign(t, 8192)
	g := r.get(b, rw)
	r.put(g)
	if r.is(g.RKey()) {
		t.Error("kept, and nobody would tell when the memory goes")
	}
	counted(t, r.c, counts{"uncached": 1, "misses": 1, "regions": 0})
}
