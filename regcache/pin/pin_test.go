package pin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func open(t testing.TB, cfg Config) *Registrar {
	t.Helper()
	g, err := Open(cfg)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("no io_uring here: %v", err)
	}
	expect.OK(t, err)
	t.Cleanup(func() { expect.OK(t, g.Close()) })
	return g
}

func register(t testing.TB, g *Registrar, b rdma.Buffer) rdma.MR {
	t.Helper()
	m := expect.Get(g.RegMR(0, b, rdma.LocalWrite))(t)
	t.Cleanup(func() { m.Close() })
	return m
}

func alloc(t testing.TB, n int) rdma.Buffer {
	t.Helper()
	b := expect.Get(rdma.Alloc(n))(t)
	return b
}

func TestBytesMoveByKey(t *testing.T) {
	g := open(t, Config{})
	b := alloc(t, 300_000) // several pipes full
	p := expect.Get(b.Slice(1000, 290_000))(t)
	m := register(t, g, p)
	in := make([]byte, p.Len())
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	expect.OK(t, g.Write(m.LKey(), m.Addr(), in))
	if !bytes.Equal(p.Bytes(), in) || b.Bytes()[999] != 0 || b.Bytes()[291_000] != 0 {
		t.Error("other bytes than were written")
	}
	p.Bytes()[5]++
	in[5]++
	out := make([]byte, len(in))
	if err := g.Read(m.LKey(), m.Addr(), out); err != nil || !bytes.Equal(out, in) {
		t.Errorf("read other bytes: %v", err)
	}
	for _, at := range []uint64{m.Addr() - 1, m.Addr() + m.Len(), ^uint64(0) - 3} {
		expect.Is(t, "beside the registration", g.Write(m.LKey(), at, []byte{1}), unix.EFAULT)
	}
	key := m.LKey()
	expect.OK(t, m.Close())
	if err := g.Write(key, p.Addr(), []byte{1}); err == nil {
		t.Error("by a closed key")
	}
	again := register(t, g, p) // the same slot, another key
	if err := g.Write(key, p.Addr(), []byte{1}); !errors.Is(err, rdma.ErrInvalid) || again.LKey() == key {
		t.Errorf("by the key of the slot's last user: %v", err)
	}
	if err := g.Write(again.LKey(), p.Addr(), []byte{9}); err != nil || p.Bytes()[0] != 9 {
		t.Errorf("after all the refusals: %v", err)
	}
	again.Close()
	b.Free()
}

// The pages stay with the registration when the range gets others: that is what a stale
// entry of a cache leads to.
func TestPagesStayPinned(t *testing.T) {
	g := open(t, Config{})
	b := alloc(t, 8192)
	defer b.Free()
	m := register(t, g, b)
	b.Bytes()[0] = 1
	expect.OK(t, unix.Madvise(b.Bytes(), unix.MADV_DONTNEED))
	if b.Bytes()[0] != 0 {
		t.Fatal("the range has its old pages")
	}
	if err := g.Write(m.LKey(), m.Addr()+1, []byte{2}); err != nil || b.Bytes()[1] != 0 {
		t.Errorf("%v, the write landed in the new pages: %d", err, b.Bytes()[1])
	}
	out := make([]byte, 2)
	if err := g.Read(m.LKey(), m.Addr(), out); err != nil || out[0] != 1 || out[1] != 2 {
		t.Errorf("%v, the old pages hold %v", err, out)
	}
	m.Close()
}

func TestSlotsAndSizesAreBounded(t *testing.T) {
	g := open(t, Config{Slots: 2})
	b := alloc(t, 4096)
	defer b.Free()
	a, c := register(t, g, b), register(t, g, b)
	expect.Is(t, "a third in two slots", expect.Err(g.RegMR(0, b, 0)), unix.ENOMEM)
	expect.Is(t, "close with registrations", g.Close(), rdma.ErrBusy)
	a.Close()
	a.Close()
	register(t, g, b).Close()
	c.Close()
	for _, x := range []struct {
		pd  rdma.PD
		buf rdma.Buffer
		acc rdma.Access
	}{{1, b, 0}, {0, rdma.Buffer{}, 0}, {0, b, rdma.RemoteWrite}} {
		expect.Is(t, fmt.Sprintf("%+v", x), expect.Err(g.RegMR(x.pd, x.buf, x.acc)), rdma.ErrInvalid)
	}
	for _, cfg := range []Config{{Slots: -1}, {Slots: 1<<14 + 1}} {
		expect.Is(t, fmt.Sprintf("%+v", cfg), expect.Err(Open(cfg)), rdma.ErrInvalid)
	}
}

// Pinned pages count against RLIMIT_MEMLOCK of who has no CAP_IPC_LOCK. The thread that
// drops it ends with the goroutine.
func TestPinnedMemoryIsLimited(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil || lim.Cur > 1<<30 {
		t.Skipf("RLIMIT_MEMLOCK of %d bytes is no limit here", lim.Cur)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		if err := dropIPCLock(); err != nil {
			t.Errorf("capset: %v", err)
			return
		}
		g, err := Open(Config{})
		if err != nil {
			t.Logf("skipped: %v", err)
			return
		}
		defer g.Close()
		over := alloc(t, int(lim.Cur)+os.Getpagesize())
		defer over.Free()
		if m, err := g.RegMR(0, over, 0); !errors.Is(err, unix.ENOMEM) {
			t.Errorf("more than RLIMIT_MEMLOCK: %v", err)
			if err == nil {
				m.Close()
			}
		}
	})
	wg.Wait()
}

// dropIPCLock takes CAP_IPC_LOCK from this thread.
func dropIPCLock() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	return unix.Capset(&hdr, &data[0])
}
