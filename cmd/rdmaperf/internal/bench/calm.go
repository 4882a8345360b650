package bench

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// calm keeps the process's other threads from preempting its workers. The Go
// runtime's monitor wakes thousands of times a second while a thread spins through
// cgo, and where CPUs are few each wake-up takes one from a worker of this or of the
// other side. Under SCHED_BATCH they wait for a free CPU or the next tick (sched(7)).
// Stacks that work in background threads of their own are left alone.
var calm struct {
	sync.Mutex
	workers map[int]int // threads that measure, and how often each was named
	changed map[int]bool
}

// calmOthers begins to, with the calling thread among the workers, and returns what
// ends it.
func calmOthers() (restore func()) {
	calm.Lock()
	defer calm.Unlock()
	if calm.workers == nil {
		calm.workers, calm.changed = map[int]int{}, map[int]bool{}
	}
	own := unix.Gettid()
	calm.workers[own]++
	if calm.changed[own] || len(calm.changed) > 0 {
		swapPolicy(own, unix.SCHED_BATCH, unix.SCHED_NORMAL) // inherited from who made the thread
		delete(calm.changed, own)
	}
	for _, tid := range threads() {
		if calm.workers[tid] == 0 && swapPolicy(tid, unix.SCHED_NORMAL, unix.SCHED_BATCH) {
			calm.changed[tid] = true
		}
	}
	return func() {
		calm.Lock()
		defer calm.Unlock()
		if calm.workers[own]--; calm.workers[own] == 0 {
			delete(calm.workers, own)
		}
		if len(calm.workers) > 0 {
			return
		}
		if len(calm.changed) > 0 {
			for _, tid := range threads() { // with those that were made meanwhile
				swapPolicy(tid, unix.SCHED_BATCH, unix.SCHED_NORMAL)
			}
		}
		clear(calm.changed)
	}
}

// threads lists this process's.
func threads() []int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var tids []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// swapPolicy changes a thread's scheduling policy if it is from. A thread that is
// gone, or may not be changed, keeps what it has.
func swapPolicy(tid int, from, to uint32) bool {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil || a.Policy != from {
		return false
	}
	a.Policy = to
	return unix.SchedSetAttr(tid, a, 0) == nil
}
