package engine

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// AllowedCPUs lists the CPUs that this process may run on, in rising order.
func AllowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

func pinThread(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set) == nil
}

// onOwnThread runs f in a thread of its own, which ends with f; never in the main one, which ends with the process.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // a goroutine that ends locked ends its thread
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()
			f()
		}()
		<-ended
		runtime.UnlockOSThread()
	}()
}

// ownFiles gives the calling thread a table of open files of its own (unshare(2)): of a shared one the kernel takes a
// reference in each doorbell. There are no sockets in it, because a peer must see at once that its connection was
// closed.
func ownFiles() {
	if unix.Unshare(unix.CLONE_FILES) != nil {
		return
	}
	var list [256]int // most processes have fewer, and then nothing is allocated
	var st unix.Stat_t
	for _, fd := range numbered("/proc/thread-self/fd", list[:0]) {
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			unix.Close(fd)
		}
	}
}
