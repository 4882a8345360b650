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

// place returns the bytes copied. The last byte becomes visible after all others (rdma.FeatLastByteLast).
func place(dst, src *span) int {
	n := min(dst.size, src.size)
	if n == 0 {
		return 0
	}
	// The end is read before the copy, as spans may overlap, and by word, so that nobody sees half a word.
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

// storeByte publishes one byte to rdma.LoadByte; a neighbour's store to the word makes the compare-and-swap try again.
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

// fetch executes an atomic and returns the old value; it is atomic for the application's sync/atomic too.
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
