package lite

import (
	"runtime"
	"testing"
	"unsafe"
)

// What an operation on the first piece needs lies in one cache line, and no entry begins
// inside one.
func TestAnEntryIsTwoLines(t *testing.T) {
	const line = 64
	if size, end := unsafe.Sizeof(entry{}), unsafe.Offsetof(entry{}.perm)+unsafe.Sizeof(Perm(0)); size != 2*line ||
		end > line {
		t.Errorf("an entry has %d bytes, and what is needed ends at %d", size, end)
	}
	var all []*entry // on the heap
	for i := range 1000 {
		e := newEntry(1, ChunkSize+8, PermRead, []piece{{Node: i, Off: 64, Len: ChunkSize},
			{Node: i + 1, Off: 128, Len: 8}})
		all = append(all, e)
		if at := uintptr(unsafe.Pointer(e)) % line; at != 0 {
			t.Fatalf("entry %d begins %d bytes behind a line", i, at)
		}
		for _, c := range []struct {
			off, at uint64
			node    int
		}{{0, 0, i}, {ChunkSize - 1, ChunkSize - 1, i}, {ChunkSize, 0, i + 1}, {ChunkSize + 7, 7, i + 1}} {
			if p, at := e.find(c.off); p.Node != c.node || at != c.at {
				t.Fatalf("byte %d is byte %d of node %d, want %d of %d", c.off, at, p.Node, c.at, c.node)
			}
		}
	}
	runtime.KeepAlive(all)
}
