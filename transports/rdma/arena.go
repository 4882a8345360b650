package rdma

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma/tlsf"
)

// Pages is what memory is made of.
type Pages uint8

const (
	PagesAuto Pages = iota // the largest that the system gives without being asked for privileges
	PagesBase              // of the processor's base size
	PagesTHP               // transparent huge pages, as far as the system finds some (madvise(2), MADV_HUGEPAGE)
	PagesHuge              // hugetlbfs: taken from the reserved pool, or the arena fails (mmap(2), MAP_HUGETLB)
)

var pagesNames = [...]string{"auto", "base", "thp", "hugetlb"}

// String is the word for it.
func (p Pages) String() string { return nameIn(pagesNames[:], p, "pages?") }

// ArenaConfig says what an arena is made of.
type ArenaConfig struct {
	Pages Pages
	// NoFork keeps the memory out of children, so that fork(2) leaves the pages that a
	// device has pinned to this process (madvise(2), MADV_DONTFORK; ibv_fork_init(3)).
	NoFork bool
}

const (
	hugeSize = 2 << 20
	// granule is what blocks of an arena are multiples of, a cache line: neighbours do
	// not share one, and atomics find their 8 bytes aligned.
	granule = 64
)

// Arena is one mapping that is handed out in blocks. All methods are safe for
// concurrent use. Alloc and Free of a block take constant time and no system call.
type Arena struct {
	m     *mapping
	pages Pages

	mu     sync.Mutex
	heap   *tlsf.Heap
	closed bool
	went   atomic.Int64 // blocks that were freed and are held
}

// NewArena maps size bytes, rounded up to whole pages. Fails with ErrInvalid for a size
// below 1 and with the system's error.
func NewArena(size int, cfg ArenaConfig) (*Arena, error) {
	fail := func(err error) (*Arena, error) {
		return nil, &OpError{"map arena of", fmt.Sprintf("%d bytes", size), err}
	}
	if size < 1 || cfg.Pages > PagesHuge {
		return fail(ErrInvalid)
	}
	m, pages, err := mapPages(size, cfg.Pages)
	if err != nil {
		return fail(err)
	}
	if cfg.NoFork {
		if err := syscall.Madvise(m.whole, syscall.MADV_DONTFORK); err != nil {
			unmapMemory(m.whole)
			return fail(err)
		}
	}
	a := &Arena{m: m, pages: pages, heap: tlsf.New(uint64(len(m.b)) / granule)}
	m.arena = a
	space.claim(m)
	return a, nil
}

func mapPages(size int, want Pages) (*mapping, Pages, error) {
	round := func(to int) int { return (size + to - 1) / to * to }
	if want == PagesHuge || want == PagesAuto && size >= hugeSize {
		b, err := mapMemory(round(hugeSize), syscall.MAP_HUGETLB)
		if err == nil {
			return &mapping{b: b, whole: b}, PagesHuge, nil
		}
		if want == PagesHuge {
			return nil, 0, &AdviceError{err, "reserve huge pages in /proc/sys/vm/nr_hugepages, or use transparent ones"}
		}
	}
	if want == PagesTHP || want == PagesAuto && size >= hugeSize {
		// Huge pages lie at multiples of their size; what is in front is never touched.
		whole, err := mapMemory(round(hugeSize)+hugeSize-pageSize, 0)
		if err != nil {
			return nil, 0, err
		}
		off := int(-addrOf(whole) & (hugeSize - 1))
		b := whole[off : off+round(hugeSize)]
		if err = syscall.Madvise(b, syscall.MADV_HUGEPAGE); err == nil {
			return &mapping{b: b, whole: whole}, PagesTHP, nil
		}
		unmapMemory(whole)
		if want == PagesTHP {
			return nil, 0, &AdviceError{err, "the kernel has no transparent huge pages: use base pages"}
		}
	}
	whole, err := mapMemory(round(pageSize), 0)
	if err != nil {
		return nil, 0, err
	}
	if want == PagesBase && len(whole) >= hugeSize { // also where the system would give huge ones unasked
		syscall.Madvise(whole, syscall.MADV_NOHUGEPAGE) // a kernel without them needs no telling
	}
	return &mapping{b: whole, whole: whole}, PagesBase, nil
}

// Pages is what the arena is made of; never PagesAuto.
func (a *Arena) Pages() Pages { return a.pages }

// Buffer is the whole arena, to be registered at once. It is not to be freed.
func (a *Arena) Buffer() Buffer { return Buffer{b: a.m.b, m: a.m, part: true} }

// Left is how many bytes are free, in however many pieces. Blocks that are held count as taken.
func (a *Arena) Left() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int(a.heap.Left()) * granule
}

// Held is how many blocks were freed and are held still; see [Leaving].
func (a *Arena) Held() int { return int(a.went.Load()) }

// Alloc takes size bytes at a multiple of align, a power of two, and of 64. What they
// hold is what their last owner left there. The caller owns them until Free. Fails
// with ErrNoRoom when no piece is large enough, ErrInvalid, and ErrClosed.
func (a *Arena) Alloc(size, align int) (Buffer, error) {
	var err error
	switch {
	case size < 1 || align < 0 || align&(align-1) != 0:
		err = ErrInvalid
	default:
		units, step := (uint64(size)+granule-1)/granule, max(uint64(align)/granule, 1)
		// The first byte of an arena lies at a page only.
		skew := addrOf(a.m.b) / granule & (step - 1)
		a.mu.Lock()
		if a.closed {
			a.mu.Unlock()
			err = ErrClosed
			break
		}
		if skew != 0 {
			a.mu.Unlock()
			err = fmt.Errorf("aligned to %d, beyond the arena's own: %w", align, ErrInvalid)
			break
		}
		id, gen, off, ok := a.heap.Alloc(units, step)
		a.mu.Unlock()
		if ok {
			lo := off * granule
			return Buffer{b: a.m.b[lo : lo+uint64(size) : lo+uint64(size)], m: a.m, blk: id, gen: gen}, nil
		}
		err = ErrNoRoom
	}
	return Buffer{}, &OpError{"allocate from arena", fmt.Sprintf("%d bytes", size), err}
}

func (a *Arena) holds(blk, gen uint32) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heap.Taken(blk, gen)
}

func (a *Arena) free(b Buffer) error {
	a.mu.Lock()
	if !a.heap.Taken(b.blk, b.gen) {
		a.mu.Unlock()
		return ErrClosed
	}
	if !watched() {
		a.heap.Free(b.blk)
		a.mu.Unlock()
		return nil
	}
	a.heap.Retire(b.blk)
	a.mu.Unlock()
	a.went.Add(1)
	return leave(&Leaving{Addr: b.Addr(), Len: uint64(b.Len()), Cause: Returned, finish: func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.heap.Free(b.blk)
		a.went.Add(-1)
		return nil
	}})
}

// Close unmaps the arena; ErrBusy while blocks are taken or held. Registrations of the
// whole must have been closed, by the caller or by a function of [Watch].
func (a *Arena) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	if n := a.heap.Len(); n > 0 {
		a.mu.Unlock()
		return &OpError{"close arena with", fmt.Sprintf("%d blocks taken", n), ErrBusy}
	}
	a.closed = true
	a.mu.Unlock()
	return a.m.end()
}
