package engine

import (
	"syscall"
	"testing"
)

// A thread that sleeps in the kernel leaves its CPU, which counts.
func TestSwitchesOfThreadsAreCounted(t *testing.T) {
	const sleeps = 20
	before := ReadUsage()
	for range sleeps {
		nap := syscall.NsecToTimespec(1000)
		if err := syscall.Nanosleep(&nap, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	if n := ReadUsage().Minus(before).switches; n < sleeps {
		t.Errorf("%d switches for %d sleeps", n, sleeps)
	}
}
