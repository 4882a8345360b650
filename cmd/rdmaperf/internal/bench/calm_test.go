package bench

import (
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// policies counts this process's threads with a scheduling policy.
func policies(policy uint32) (n int) {
	for _, tid := range threads() {
		if a, err := unix.SchedGetAttr(tid, 0); err == nil && a.Policy == policy {
			n++
		}
	}
	return n
}

// Only workers keep their policy while there are any, whoever made their threads,
// and everybody has it back behind the last.
func TestOthersAreCalmUntilTheLastWorkerEnds(t *testing.T) {
	if policies(unix.SCHED_NORMAL) != len(threads()) {
		t.Skip("the tests were started under another scheduling policy")
	}
	enter, leave, ended := make(chan int), make(chan struct{}), make(chan struct{})
	for range 2 {
		go func() {
			runtime.LockOSThread() // and never unlocks, as a worker
			restore := calmOthers()
			enter <- unix.Gettid()
			<-leave
			restore()
			ended <- struct{}{}
		}()
	}
	workers := []int{<-enter, <-enter}
	for _, tid := range threads() {
		a, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue
		}
		if want := slices.Contains(workers, tid); (a.Policy == unix.SCHED_NORMAL) != want {
			t.Errorf("thread %d, worker %v: policy %d", tid, want, a.Policy)
		}
	}
	leave <- struct{}{}
	<-ended
	if policies(unix.SCHED_BATCH) == 0 {
		t.Error("nobody is calm although a worker is left")
	}
	leave <- struct{}{}
	<-ended
	if n := policies(unix.SCHED_BATCH); n > 0 {
		t.Errorf("%d threads are still calm behind the last worker", n)
	}
}
