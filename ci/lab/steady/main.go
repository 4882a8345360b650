// Command steady keeps a translated guest's tables of addresses large, for as long as
// it runs.
//
// QEMU looks addresses up in a table for each CPU, in which every page has one place.
// It resizes the table only when it empties it, by how full it was since (accel/tcg,
// tlb_mmu_resize_locked): above 70 % it doubles, below 30 % in 100 ms it shrinks. Two
// programs that poll on a CPU each empty nothing, and keep the size that they happen to
// find. With a small one the pages of a post evict each other, and the same instructions
// take 27 us in one run of a program that take 18 us in the next. That this is the cause
// is concluded from the host's profile of slow runs, and from what this program does.
//
// So this program maps, touches and unmaps many pages at once, every so often: each
// time the table is full when it is emptied. Run one on every CPU. Medians do not see
// the few milliseconds that it takes; a guest with KVM needs none of it.
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	size = 4 << 20 // 1024 pages: four times the table that QEMU begins with
	page = 4096
	// pause: below the 100 ms after which QEMU would shrink the table.
	pause = 60 * time.Millisecond
)

func main() {
	for {
		p, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fmt.Fprintln(os.Stderr, "steady: map 4 MiB:", err)
			os.Exit(1)
		}
		for i := 0; i < len(p); i += page {
			p[i] = 1
		}
		if err := syscall.Munmap(p); err != nil {
			fmt.Fprintln(os.Stderr, "steady: unmap 4 MiB:", err)
			os.Exit(1)
		}
		time.Sleep(pause)
	}
}
