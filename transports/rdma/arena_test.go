package rdma

import (
	"errors"
	"fmt"
	"testing"
)

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
