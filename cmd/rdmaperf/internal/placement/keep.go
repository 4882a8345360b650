package placement

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Keep lets all threads of this process, and what they start, run on these CPUs alone
// (sched_setaffinity(2)), so that memory comes from their node. A thread that begins while
// this runs inherits what its parent has by then; the list is read until nothing is new.
func Keep(cpus []int) error {
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	done := map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("keep the process on CPUs of a node: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			done[id], fresh = true, true
			if err := unix.SchedSetaffinity(id, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("keep the process on CPUs of a node: thread %d: %w", id, err)
			}
		}
	}
	return nil
}
