package memdev

import (
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// span is a scatter or gather list that passed its checks: ranges of mapped memory, none of them empty.
type span struct {
	part [rdma.MaxSGE][]byte
	n    int
	size int
}

func (s *span) add(b []byte) {
	if len(b) > 0 {
		s.part[s.n] = b
		s.n++
		s.size += len(b)
	}
}

// at is byte i of the span, 0 ≤ i < size.
func (s *span) at(i int) *byte {
	p := 0
	for i >= len(s.part[p]) {
		i -= len(s.part[p])
		p++
	}
	return &s.part[p][i]
}

// place copies src to dst as far as both reach and returns the bytes copied. The last byte becomes visible after all
// others (rdma.FeatLastByteLast), so that the target may watch it in memory.
func place(dst, src *span) int {
	n := min(dst.size, src.size)
	if n == 0 {
		return 0
	}
	// The end is read before the copy, because the spans may overlap: a whole word where both sides have one, so that
	// an owner who changes the source word by word meanwhile is never seen with half a word.
	from, to := src.word(n), dst.word(n)
	whole := from != nil && to != nil
	var lastWord uint64
	var last byte
	tail := 1
	if whole {
		lastWord, tail = atomic.LoadUint64(from), 8
	} else {
		last = *src.at(n - 1)
	}
	var di, do, si, so int
	for left := n - tail; left > 0; {
		d, s := dst.part[di][do:], src.part[si][so:]
		c := copy(d[:min(len(d), left)], s)
		left -= c
		if do += c; do == len(dst.part[di]) {
			di, do = di+1, 0
		}
		if so += c; so == len(src.part[si]) {
			si, so = si+1, 0
		}
	}
	if whole {
		atomic.StoreUint64(to, lastWord)
	} else {
		storeByte(dst.at(n-1), last)
	}
	return n
}

// word is the aligned 8 bytes that end at byte n of the span, or nil when they are not aligned or lie in two parts.
func (s *span) word(n int) *uint64 {
	if n < 8 {
		return nil
	}
	first, last := unsafe.Pointer(s.at(n-8)), unsafe.Pointer(s.at(n-1))
	if uintptr(first)&7 != 0 || uintptr(last)-uintptr(first) != 7 {
		return nil
	}
	return (*uint64)(first)
}

// storeByte publishes one byte: everything stored before is visible to whoever sees it through rdma.LoadByte.
// Neighbours in the word may be stored to by their owner meanwhile; the compare-and-swap then sees the change and tries
// again. The word never crosses the mapping, which is made of whole pages.
func storeByte(p *byte, v byte) {
	addr := uintptr(unsafe.Pointer(p))
	word := (*uint32)(unsafe.Pointer(uintptr(unsafe.Pointer(p)) &^ 3))
	i := addr & 3
	for {
		old := atomic.LoadUint32(word)
		next := old
		(*[4]byte)(unsafe.Pointer(&next))[i] = v
		if atomic.CompareAndSwapUint32(word, old, next) {
			return
		}
	}
}

// fetch executes an atomic on the 8 aligned bytes of mem and returns the old
// value. It is atomic for the application's own sync/atomic operations too.
func fetch(wr *rdma.SendWR, mem []byte) uint64 {
	word := (*uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
	if wr.Op == rdma.OpFetchAdd {
		return atomic.AddUint64(word, wr.CompareAdd) - wr.CompareAdd
	}
	for {
		old := atomic.LoadUint64(word)
		if old != wr.CompareAdd || atomic.CompareAndSwapUint64(word, old, wr.Swap) {
			return old
		}
	}
}
