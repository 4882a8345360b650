package rdma_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// foreign maps size bytes and declares them, until the end of the test.
func foreign(t *testing.T, size int) (raw []byte, b rdma.Buffer) {
	t.Helper()
	raw, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(raw) })
	if b, err = rdma.Foreign(raw); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Free() })
	return raw, b
}

// TestForeignMemoryPermitsWhatItsPagesDo: rights that the pages do not give are refused,
// on any part of the mapping, and only there.
func TestForeignMemoryPermitsWhatItsPagesDo(t *testing.T) {
	page := syscall.Getpagesize()
	raw, whole := foreign(t, 4*page)
	for i, prot := range []int{syscall.PROT_READ | syscall.PROT_WRITE, syscall.PROT_READ, syscall.PROT_NONE,
		syscall.PROT_READ | syscall.PROT_WRITE} {
		if err := syscall.Mprotect(raw[i*page:(i+1)*page], prot); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what        string
		from, to    int
		read, write bool
	}{
		{"a page that may be written", 0, page, true, true},
		{"the last page", 3 * page, 4 * page, true, true},
		{"a part of a page that may be read", page + 5, page + 6, true, false},
		{"a byte of the one and of the other", page - 1, page + 1, true, false},
		{"a page that may not be touched", 2 * page, 3 * page, false, false},
		{"pages around one that may not", 0, 4 * page, false, false},
	} {
		b, err := whole.Slice(c.from, c.to-c.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []struct {
			rights rdma.Access
			may    bool
		}{{0, c.read}, {rdma.RemoteRead, c.read}, {rdma.LocalWrite, c.write},
			{rdma.LocalWrite | rdma.RemoteWrite, c.write}} {
			if err := b.Permits(a.rights); (err == nil) != a.may || err != nil && !errors.Is(err, rdma.ErrInvalid) {
				t.Errorf("%s, rights %#x: %v", c.what, a.rights, err)
			}
		}
	}
}

// TestMemoryThatMayBeWrittenAllocatesNothing: it is looked at once, and registrations of it stay as cheap as they are.
func TestMemoryThatMayBeWrittenAllocatesNothing(t *testing.T) {
	_, b := foreign(t, 1<<20)
	err := b.Permits(rdma.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { err = b.Permits(rdma.LocalWrite) }); n != 0 || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
	own, err := rdma.Alloc(1)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Free()
	if n := testing.AllocsPerRun(100, func() { err = own.Permits(rdma.LocalWrite) }); n != 0 || err != nil {
		t.Errorf("memory of our own: %v allocations, %v", n, err)
	}
}
