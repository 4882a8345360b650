package rdma

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"unsafe"
)

func TestAllocatedMemoryIsFoundByAddress(t *testing.T) {
	b := alloc(t, 10000)
	if b.Addr()%4096 != 0 || b.Len() != 10000 {
		t.Errorf("Alloc gave address %#x, %d bytes", b.Addr(), b.Len())
	}
	if len(bytes.Trim(b.Bytes(), "\x00")) > 0 {
		t.Fatal("new memory is not zero")
	}
	b.Bytes()[9999] = 7
	for _, c := range []struct {
		off  uint64
		n    int
		want int // -1: nil
	}{{0, 10000, 10000}, {9999, 1, 1}, {10000, 0, -1}, {9999, 2, -1}, {0, 0, 0}, {0, -1, -1}, {^uint64(0), 1, -1},
		{1 << 62, 1, -1}} {
		got := BufferAt(b.Addr()+c.off, c.n)
		if (got == nil) != (c.want == -1) || got != nil && len(got) != c.want {
			t.Errorf("BufferAt(+%d, %d) = %d bytes (nil %v), want %d", c.off, c.n, len(got), got == nil, c.want)
		}
	}
	if got := BufferAt(b.Addr()+9999, 1); got[0] != 7 {
		t.Error("BufferAt found other bytes")
	}
	addr := b.Addr()
	noError(t, b.Free())
	if BufferAt(addr, 1) != nil {
		t.Error("freed memory is still found")
	}
	fails(t, "second Free", b.Free(), ErrClosed)
	fails(t, "Alloc(0)", errOf(Alloc(0)), ErrInvalid)
}

func TestBufferAtAllocatesNothing(t *testing.T) {
	b := alloc(t, 4096)
	defer b.Free()
	if n := testing.AllocsPerRun(100, func() { BufferAt(b.Addr()+8, 64) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

func errOf[T any](_ T, err error) error { return err }

func alloc(t testing.TB, size int) Buffer {
	t.Helper()
	return must(Alloc(size))(t)
}

func foreign(t testing.TB, raw []byte) Buffer {
	t.Helper()
	return must(Foreign(raw))(t)
}

func mapped(t testing.TB, pages int) []byte {
	t.Helper()
	b := must(mapMemory(pages*pageSize, 0))(t)
	t.Cleanup(func() { unmapMemory(b) })
	return b
}

func TestAPartKeepsInsideAndIsNotFreed(t *testing.T) {
	b := alloc(t, 8192)
	defer b.Free()
	p := must(b.Slice(100, 200))(t)
	if p.Addr() != b.Addr()+100 || p.Len() != 200 || cap(p.Bytes()) != 200 || p.Offset() != 100 || !p.Live() {
		t.Errorf("part at +%d of %d bytes, capacity %d, offset %d", p.Addr()-b.Addr(), p.Len(), cap(p.Bytes()),
			p.Offset())
	}
	q, err := p.Slice(50, 150)
	if err != nil || q.Offset() != 150 {
		t.Errorf("part of a part: offset %d, %v", q.Offset(), err)
	}
	if m := q.Mapping(); m.Addr() != b.Addr() || m.Len() != 8192 {
		t.Errorf("mapping of a part: %#x, %d bytes", m.Addr(), m.Len())
	}
	for _, c := range [][2]int{{-1, 1}, {0, 0}, {0, 201}, {200, 1}, {201, 0}, {1, 200}, {1, int(^uint(0) >> 1)}} {
		fails(t, fmt.Sprintf("Slice(%d, %d) of 200 bytes", c[0], c[1]), errOf(p.Slice(c[0], c[1])), ErrInvalid)
	}
	for _, x := range []Buffer{p, q, b.Mapping()} {
		fails(t, "Free of a part", x.Free(), ErrInvalid)
	}
	if !b.Live() {
		t.Error("the whole is gone")
	}
	b.Free()
	if p.Live() || b.Live() {
		t.Error("freed memory is live")
	}
}

func TestForeignMemoryIsFoundUntilFreed(t *testing.T) {
	raw := mapped(t, 4)
	f := foreign(t, raw[10:5000])
	if got, ok := Find(f.Addr()+5, 10); !ok || got.Offset() != 5 || got.Len() != 10 {
		t.Errorf("Find: offset %d, %d bytes, %v", got.Offset(), got.Len(), ok)
	}
	if BufferAt(f.Addr()-1, 1) != nil || BufferAt(f.Addr()+uint64(f.Len()), 1) != nil {
		t.Error("bytes beside a declaration are found")
	}
	for _, again := range [][]byte{raw, raw[:11], raw[4999:], raw[20:30]} {
		fails(t, "declared twice", errOf(Foreign(again)), ErrBusy)
	}
	fails(t, "declared nothing", errOf(Foreign(nil)), ErrInvalid)
	noError(t, f.Free())
	raw[10] = 1 // still mapped
	if f.Live() || !errors.Is(f.Free(), ErrClosed) {
		t.Error("still declared")
	}
}

func TestForgottenPagesAreNobodys(t *testing.T) {
	f := foreign(t, mapped(t, 8))
	type heardOf struct {
		at, n uint64
		cause Cause
	}
	var heard []heardOf
	stop := Watch(func(l *Leaving) { heard = append(heard, heardOf{l.Addr - f.Addr(), l.Len, l.Cause}) })
	defer stop()
	page := uint64(pageSize)
	Forget(f.Addr()+2*page+1, page) // two pages have a byte of it
	if f.Live() || BufferAt(f.Addr()+2*page, 1) != nil || BufferAt(f.Addr()+3*page, 1) != nil {
		t.Error("forgotten pages are live")
	}
	for _, at := range []uint64{0, 4 * page} {
		if BufferAt(f.Addr()+at, int(2*page)) == nil {
			t.Errorf("the pages at +%d are gone", at)
		}
	}
	if BufferAt(f.Addr()+page, int(2*page)) != nil {
		t.Error("found a range across the gap")
	}
	Forget(f.Addr()+2*page, page) // nothing is there
	Forget(^uint64(0)-10, 100)    // nor beyond the end
	noError(t, f.Free())
	want := []heardOf{{2 * page, 2 * page, PagesGone}, {0, 2 * page, Unmapped}, {4 * page, 4 * page, Unmapped}}
	if !slices.Equal(heard, want) {
		t.Errorf("heard of %v, want %v", heard, want)
	}
}

func TestDroppedPagesLeaveTheBufferLive(t *testing.T) {
	b := alloc(t, 4*pageSize)
	defer b.Free()
	var got []uint64
	stop := Watch(func(l *Leaving) {
		if l.Cause == PagesDropped {
			got = append(got, l.Addr-b.Addr(), l.Len)
		}
	})
	defer stop()
	page := uint64(pageSize)
	Dropped(b.Addr()+page+1, page)
	Dropped(b.Addr()+3*page, 100*page) // no more than there is
	Dropped(^uint64(0), 2)
	if want := []uint64{page, 2 * page, 3 * page, page}; !slices.Equal(got, want) || !b.Live() {
		t.Errorf("heard of %v, want %v; live %v", got, want, b.Live())
	}
}

// present reports whether the pages of a range are mapped (mincore(2)).
func present(addr uint64, n int) bool {
	vec := make([]byte, (n+pageSize-1)/pageSize)
	_, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(addr), uintptr(n), uintptr(unsafe.Pointer(&vec[0])))
	return errno == 0
}

func TestHeldMemoryIsUnmappedByTheLastRelease(t *testing.T) {
	b := alloc(t, 8192)
	addr := b.Addr()
	var held *Leaving
	stop := Watch(func(l *Leaving) {
		if l.Addr == addr {
			l.Hold()
			l.Hold()
			held = l
		}
	})
	defer stop()
	noError(t, b.Free())
	if held == nil || held.Cause != Unmapped || b.Live() {
		t.Fatal("nobody heard")
	}
	b.Bytes()[0] = 1 // or the test dies
	held.Release()
	if !present(addr, 8192) {
		t.Fatal("unmapped under a hold")
	}
	noError(t, held.Release())
	if present(addr, 8192) {
		t.Error("still mapped")
	}
	fails(t, "second Free", b.Free(), ErrClosed)
}

func TestAStaleDeclarationGivesWay(t *testing.T) {
	raw := must(mapMemory(64*pageSize, 0))(t)
	f := foreign(t, raw)
	unmapMemory(raw)
	var got []Buffer
	for f.Live() && len(got) < 100 { // the kernel gives the highest gap that fits
		got = append(got, alloc(t, 64*pageSize))
	}
	if f.Live() {
		t.Error("100 mappings and none where memory was unmapped: the test shows nothing")
	}
	for _, b := range got {
		if !b.Live() {
			t.Error("an allocation is not live")
		}
		b.Free()
	}
	f.Free()
}

// TestForeignMemoryPermitsWhatItsPagesDo: rights that the pages do not give are refused,
// on any part of the mapping, and only there.
func TestForeignMemoryPermitsWhatItsPagesDo(t *testing.T) {
	page, both := pageSize, syscall.PROT_READ|syscall.PROT_WRITE
	raw := mapped(t, 4)
	whole := foreign(t, raw)
	defer whole.Free()
	for i, prot := range []int{both, syscall.PROT_READ, syscall.PROT_NONE, both} {
		noError(t, syscall.Mprotect(raw[i*page:(i+1)*page], prot))
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
		b := must(whole.Slice(c.from, c.to-c.from))(t)
		for _, a := range []struct {
			rights Access
			may    bool
		}{{0, c.read}, {RemoteRead, c.read}, {LocalWrite, c.write},
			{LocalWrite | RemoteWrite, c.write}} {
			if err := b.Permits(a.rights); (err == nil) != a.may || err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("%s, rights %#x: %v", c.what, a.rights, err)
			}
		}
	}
}

func TestMemoryThatMayBeWrittenAllocatesNothing(t *testing.T) {
	for what, b := range map[string]Buffer{"foreign": foreign(t, mapped(t, 256)), "our own": alloc(t, 1)} {
		defer b.Free()
		err := b.Permits(LocalWrite)
		noError(t, err)
		if n := testing.AllocsPerRun(100, func() { err = b.Permits(LocalWrite) }); n != 0 || err != nil {
			t.Errorf("memory that is %s: %v allocations, %v", what, n, err)
		}
	}
}

func arena(t testing.TB, size int, cfg ArenaConfig) *Arena {
	t.Helper()
	return must(NewArena(size, cfg))(t)
}

func TestAnArenaIsHandedOutInBlocks(t *testing.T) {
	for _, pages := range []Pages{PagesAuto, PagesBase, PagesTHP} {
		a := arena(t, 3<<20, ArenaConfig{Pages: pages, NoFork: true})
		all := a.Buffer()
		if a.Pages() == PagesAuto || pages != PagesAuto && a.Pages() != pages {
			t.Errorf("asked for %v, got %v", pages, a.Pages())
		}
		if all.Len() < 3<<20 || all.Addr()%4096 != 0 || a.Pages() != PagesBase && all.Addr()%hugeSize != 0 {
			t.Errorf("%v: %d bytes at %#x", pages, all.Len(), all.Addr())
		}
		x, errX := a.Alloc(100, 0)
		y, errY := a.Alloc(5000, 4096)
		noError(t, errors.Join(errX, errY))
		if x.Addr()%64 != 0 || y.Addr()%4096 != 0 || x.Len() != 100 || y.Len() != 5000 || cap(y.Bytes()) != 5000 {
			t.Errorf("blocks of %d at %#x and %d at %#x", x.Len(), x.Addr(), y.Len(), y.Addr())
		}
		if y.Mapping().Addr() != all.Addr() || uint64(y.Offset()) != y.Addr()-all.Addr() || !y.Live() {
			t.Error("a block is not of its arena")
		}
		fails(t, "Close with blocks", a.Close(), ErrBusy)
		left := a.Left()
		if err := y.Free(); err != nil || a.Left() != left+5056 || y.Live() {
			t.Errorf("Free: %v, %d bytes more", err, a.Left()-left)
		}
		fails(t, "second Free", y.Free(), ErrClosed)
		z, _ := a.Alloc(5000, 4096) // at the same place, and y does not name it
		if err := y.Free(); z.Addr() != y.Addr() || !errors.Is(err, ErrClosed) || !z.Live() {
			t.Errorf("an old name frees the next block: %v", err)
		}
		fails(t, "Free of the whole", all.Free(), ErrInvalid)
		x.Free()
		z.Free()
		if a.Left() != all.Len() {
			t.Errorf("%d bytes free of %d", a.Left(), all.Len())
		}
		noError(t, a.Close())
		if _, err := a.Alloc(1, 0); !errors.Is(err, ErrClosed) || all.Live() || a.Close() != nil {
			t.Errorf("a closed arena: %v", err)
		}
	}
}

func TestAnArenaRefusesWhatItCannotGive(t *testing.T) {
	a := arena(t, 4096, ArenaConfig{})
	defer a.Close()
	for _, c := range []struct {
		size, align int
		want        error
	}{{0, 0, ErrInvalid}, {-1, 0, ErrInvalid}, {1, 3, ErrInvalid}, {1, -64, ErrInvalid}, {4097, 0, ErrNoRoom},
		{4096 + 1, 4096, ErrNoRoom}} {
		fails(t, fmt.Sprintf("Alloc(%d, %d)", c.size, c.align), errOf(a.Alloc(c.size, c.align)), c.want)
	}
	fails(t, "NewArena(0)", errOf(NewArena(0, ArenaConfig{})), ErrInvalid)
	b := must(a.Alloc(4096, 0))(t)
	fails(t, "a full arena", errOf(a.Alloc(1, 0)), ErrNoRoom)
	b.Free()
}

func TestAHeldBlockIsNotHandedOut(t *testing.T) {
	a := arena(t, 4096, ArenaConfig{})
	var held *Leaving
	stop := Watch(func(l *Leaving) {
		if held == nil && l.Cause == Returned {
			l.Hold()
			held = l
		}
	})
	defer stop()
	b, _ := a.Alloc(4096, 0)
	if err := b.Free(); err != nil || held == nil || held.Addr != b.Addr() || held.Len != 4096 {
		t.Fatalf("%v, heard %+v", err, held)
	}
	if b.Live() || !errors.Is(b.Free(), ErrClosed) || a.Held() != 1 {
		t.Error("the block is its last owner's")
	}
	fails(t, "handed out", errOf(a.Alloc(1, 0)), ErrNoRoom)
	fails(t, "Close", a.Close(), ErrBusy)
	held.Release()
	if c, err := a.Alloc(4096, 0); err != nil || a.Held() != 0 {
		t.Errorf("after the release: %v", err)
	} else {
		c.Free()
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

func TestArenaBlocksAllocateNothing(t *testing.T) {
	a := arena(t, 1<<20, ArenaConfig{})
	defer a.Close()
	if n := testing.AllocsPerRun(100, func() { b, _ := a.Alloc(256, 0); b.Free() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
